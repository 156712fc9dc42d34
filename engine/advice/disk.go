package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// fullDisk reports that the disk is nearly full.
func fullDisk(f Facts) []model.Recommendation {
	free := float64(f.DiskFree) / float64(max(f.DiskTotal, 1))
	if free >= f.Limits.DiskFree {
		return nil
	}
	severity := model.SeverityWarning
	if free < f.Limits.DiskFree/2 {
		severity = model.SeverityCritical
	}
	return []model.Recommendation{{
		Code: "disk_nearly_full", Severity: severity, Category: model.CategoryCapacity,
		Title: "The disk is nearly full",
		Message: fmt.Sprintf("%.1f %% of the disk is free. On a full disk nothing can be written, in no database of this machine: delete what is not needed, "+
			"have the operator empty the trash (`holdfast admin trash empty --org NAME`, for each organization) or enlarge the disk.", free*100),
		Evidence: map[string]any{"disk_free_bytes": f.DiskFree, "disk_total_bytes": f.DiskTotal},
		Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/usage"},
	}}
}
