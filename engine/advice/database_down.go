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
	if db.Rebuild {
		return []model.Recommendation{withoutData(db)}
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

// withoutData reports a database whose data a recovery or a move has not brought back. No request of a client helps: its
// reason says what the operator can do.
func withoutData(db Database) model.Recommendation {
	return model.Recommendation{
		Code: "database_failed", Severity: model.SeverityCritical, Category: model.CategoryCapacity,
		Title:    "The database was not brought back",
		Message:  fmt.Sprintf("The data of %s is not on this machine, and it cannot be used until it is: %s", db.Name, db.StatusReason),
		Resource: db.resource(),
		Evidence: map[string]any{"status": db.Status},
		Caution:  "A restart of the database is refused: it has nothing to start with.",
	}
}
