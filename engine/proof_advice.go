package engine

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// proofPatience is how long the newest backup may go unproven unremarked.
const proofPatience = 24 * time.Hour

// adviseProofs speaks up for backups that could not be restored, and for a
// database whose newest one nobody has tried.
func (e *Engine) adviseProofs(db DatabaseView) (found []Recommendation, err error) {
	records, err := e.backupRecords(db.ID)
	if err != nil {
		return nil, err
	}
	newBackup := &RecommendedCall{Method: "POST", Path: "/v1/databases/" + db.ID + "/backups"}
	for _, b := range records {
		if b.Verification.Status == model.VerificationFailed && !b.Condemned {
			found = append(found, Recommendation{
				Code: "failed_proof", Severity: SeverityCritical, Category: "backup",
				Title:    "A backup failed its proof",
				Message:  fmt.Sprintf("A backup of %s could not be restored when it was tried: %s. Make another, and delete this one.", db.Name, b.Verification.Detail),
				Resource: model.Resource{Type: model.ResourceBackup, ID: b.ID, Name: db.Name},
				Evidence: map[string]any{"backup_id": b.ID, "detail": b.Verification.Detail, "failed_at": b.Verification.At},
				Action:   newBackup,
			})
		}
	}
	newest := db.LatestBackup
	if !e.cfg.Proofs || newest == nil || newest.CompletedAt == nil || e.clock().Before(newest.CompletedAt.Add(proofPatience)) {
		return found, nil
	}
	if status := newest.Verification.Status; status == model.VerificationUnverified || status == model.VerificationRunning {
		found = append(found, Recommendation{
			Code: "unverified_backup", Severity: SeverityWarning, Category: "backup",
			Title:    "The newest backup is not proven",
			Message:  fmt.Sprintf("The newest backup of %s has not been restored on trial yet. %s", db.Name, newest.Verification.Detail),
			Resource: databaseResource(db.Database),
			Evidence: map[string]any{"backup_id": newest.ID, "completed_at": newest.CompletedAt, "detail": newest.Verification.Detail},
		})
	}
	return found, nil
}
