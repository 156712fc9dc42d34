package advice

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// Archiving is the state of a database's WAL archiving.
type Archiving struct {
	Streaming bool
	SlotLost  bool
	// Behind is the age of the commits that would be lost now.
	Behind   time.Duration
	Backlog  int64 // bytes
	Failures int
	Error    string // the last one
}

// failedArchiving reports that current commits do not reach the archive.
func failedArchiving(f Facts, db Database) []model.Recommendation {
	a := db.Archiving
	if a == nil || db.Status != model.DatabaseAvailable || !a.SlotLost && (a.Streaming || a.Behind < f.Limits.WALBehind) {
		return nil
	}
	reason := a.Error
	if a.SlotLost {
		reason = "the server has removed WAL before it was received; a new backup is needed"
	}
	return []model.Recommendation{{
		Code: "wal_archiving_failed", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title:    "WAL is not archived",
		Message:  fmt.Sprintf("What was committed to %s in the last %.0f s could be lost with the machine's disk: %s", db.Name, a.Behind.Seconds(), reason),
		Resource: db.resource(),
		Evidence: map[string]any{"behind_seconds": int64(a.Behind.Seconds()), "backlog_bytes": a.Backlog, "failures": a.Failures, "slot_lost": a.SlotLost},
		Action:   call("GET", db.Database, "/recovery", nil),
		Caution:  "WAL that is not received stays on the server's disk until max_slot_wal_keep_size is reached, and is then lost.",
	}}
}
