package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// endingCertificate reports certificates that should have been renewed and were not.
func endingCertificate(f Facts, db Database) []model.Recommendation {
	left := db.CertificateEnd.Sub(f.Now)
	if db.CertificateEnd.IsZero() || left > f.Limits.CertificateLeft {
		return nil
	}
	severity := model.SeverityWarning
	if left <= 0 {
		severity = model.SeverityCritical
	}
	return []model.Recommendation{{
		Code: "certificate_near_expiry", Severity: severity, Category: model.CategorySecurity,
		Title:    "The certificate ends soon",
		Message:  fmt.Sprintf("The certificate of %s is valid until %s and was not renewed by itself. A start renews it.", db.Name, db.CertificateEnd.Format("2006-01-02 15:04 MST")),
		Resource: db.resource(),
		Evidence: map[string]any{"not_after": db.CertificateEnd, "seconds_left": int64(left.Seconds())},
		Action:   call("POST", db.Database, "/restart", nil),
		Caution:  "A restart ends every session.",
	}}
}
