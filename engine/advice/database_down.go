package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// databaseDown reports databases that have failed.
func databaseDown(_ Facts, db Database) []model.Recommendation {
	if db.Status != model.DatabaseFailed {
		return nil
	}
	return []model.Recommendation{{
		Code: "database_failed", Severity: model.SeverityCritical, Category: model.CategoryCapacity,
		Title:    "The database does not start",
		Message:  fmt.Sprintf("The database %s has failed: %s", db.Name, db.StatusReason),
		Resource: db.resource(),
		Evidence: map[string]any{"status": db.Status},
		Action:   call("POST", db.Database, "/restart", nil),
		Caution:  "It is tried again by itself; see to the reason first.",
	}}
}
