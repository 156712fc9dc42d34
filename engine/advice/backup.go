package advice

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// noBackup reports databases that should have a completed backup and have none.
func noBackup(_ Facts, db Database) []model.Recommendation {
	if !db.Unprotected {
		return nil
	}
	return []model.Recommendation{{
		Code: "no_backup", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title:    "No backup",
		Message:  fmt.Sprintf("The database %s has no completed backup: what is deleted or overwritten in it is lost.", db.Name),
		Resource: db.resource(),
		Evidence: map[string]any{"completed_backups": 0, "created_at": db.CreatedAt},
		Action:   call("POST", db.Database, "/backups", nil),
	}}
}

// oldBackup reports that the newest backup is old, unless nothing has changed since.
func oldBackup(f Facts, db Database) []model.Recommendation {
	if db.Current || db.LastCompleted == nil || db.LastCompleted.CompletedAt == nil {
		return nil
	}
	age := f.Now.Sub(*db.LastCompleted.CompletedAt)
	expected := max(f.Limits.BackupAge, 2*db.BackupEvery)
	if day := db.MaintenanceWindow.Day; day != "" && day != model.EveryDay {
		expected = max(expected, 8*24*time.Hour)
	}
	if age < expected {
		return nil
	}
	return []model.Recommendation{{
		Code: "backup_old", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title:    "The newest backup is old",
		Message:  fmt.Sprintf("The newest backup of %s is %.0f hours old: what was written since could be lost.", db.Name, age.Hours()),
		Resource: db.resource(),
		Evidence: map[string]any{"age_seconds": int64(age.Seconds()), "backup_id": db.LastCompleted.ID},
		Action:   call("POST", db.Database, "/backups", nil),
	}}
}

// failedBackup reports that the last backup attempt failed and was not merely
// interrupted.
func failedBackup(_ Facts, db Database) []model.Recommendation {
	last := db.LastAttempt
	if last == nil || last.Status != model.BackupFailed || last.Cut {
		return nil
	}
	return []model.Recommendation{{
		Code: "backup_failed", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title:    "The last backup failed",
		Message:  fmt.Sprintf("The last attempt at a backup of %s failed: %s", db.Name, last.Error),
		Resource: db.resource(),
		Evidence: map[string]any{"backup_id": last.ID, "started_at": last.StartedAt},
		Action:   call("POST", db.Database, "/backups", nil),
	}}
}
