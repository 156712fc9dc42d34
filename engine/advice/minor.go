package advice

import (
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
)

// oldMinor reports servers that run on an older minor version than the one installed.
func oldMinor(f Facts, db Database) []model.Recommendation {
	if !binaries.Newer(db.Present, db.Version) || db.Status != model.DatabaseAvailable {
		return nil
	}
	when := ""
	if !db.MaintenanceWindow.IsZero() {
		when = fmt.Sprintf(" It is restarted by itself in its maintenance window, which opens next at %s.", db.MaintenanceWindow.Next(f.Now).UTC().Format("2006-01-02 15:04 MST"))
	}
	return []model.Recommendation{{
		Code: "postgres_minor_outdated", Severity: model.SeverityWarning, Category: model.CategorySecurity,
		Title: "A newer minor version of PostgreSQL is installed",
		Message: fmt.Sprintf("%s runs on PostgreSQL %s, and this machine has %s. Minor versions mend security holes and loss of data. A restart brings the newer one.%s",
			db.Name, db.Version, db.Present, when),
		Resource: db.resource(),
		Evidence: map[string]any{"running": db.Version, "installed": db.Present},
		Action:   call("POST", db.Database, "/restart", nil),
		Caution:  "A restart ends every session.",
	}}
}
