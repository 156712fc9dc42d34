package advice

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// verificationPatience is how long the newest backup may be unverified without a recommendation.
const verificationPatience = 24 * time.Hour

// failedVerifications reports backups that could not be restored.
func failedVerifications(_ Facts, db Database) (found []model.Recommendation) {
	for _, b := range db.FailedVerifications {
		found = append(found, model.Recommendation{
			Code: "failed_verification", Severity: model.SeverityCritical, Category: model.CategoryBackup,
			Title:    "A backup failed its verification",
			Message:  fmt.Sprintf("A backup of %s could not be restored when it was tried: %s. Make another, and delete this one.", db.Name, b.Verification.Detail),
			Resource: model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name},
			Evidence: map[string]any{"backup_id": b.ID, "detail": b.Verification.Detail, "failed_at": b.Verification.At},
			Action:   call("POST", db.Database, "/backups", nil),
		})
	}
	return found
}

// unverifiedBackup reports that a database's newest backup has not been verified.
func unverifiedBackup(f Facts, db Database) []model.Recommendation {
	newest := db.LastCompleted
	if !f.Verifies || newest == nil || newest.CompletedAt == nil || f.Now.Before(newest.CompletedAt.Add(verificationPatience)) {
		return nil
	}
	if status := newest.Verification.Status; status != model.VerificationUnverified && status != model.VerificationRunning {
		return nil
	}
	return []model.Recommendation{{
		Code: "unverified_backup", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title:    "The newest backup is not verified",
		Message:  fmt.Sprintf("The newest backup of %s has not been verified by a trial restore yet. %s", db.Name, newest.Verification.Detail),
		Resource: db.resource(),
		Evidence: map[string]any{"backup_id": newest.ID, "completed_at": newest.CompletedAt, "detail": newest.Verification.Detail},
	}}
}
