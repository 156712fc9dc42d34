package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// damagedObjects speaks up for objects that the disk has damaged.
func damagedObjects(f Facts) (found []model.Recommendation) {
	for _, d := range f.Damaged {
		found = append(found, model.Recommendation{
			Code: "damaged_object", Severity: model.SeverityCritical, Category: model.CategoryBackup,
			Title:    "An object is damaged",
			Message:  fmt.Sprintf("The bytes of %q in the bucket %s are not those that were stored: upload it again, and check the disk.", d.Key, d.Bucket.Name),
			Resource: model.Resource{Type: model.ResourceObject, ID: d.Bucket.ID, Name: d.Key},
			Object:   d.Key,
			Evidence: map[string]any{"found_at": d.FoundAt, "size_bytes": d.SizeBytes},
		})
	}
	return found
}
