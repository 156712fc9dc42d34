package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// damagedObjects reports objects that the disk has damaged, or that the off-site copy has lost.
func damagedObjects(f Facts) (found []model.Recommendation) {
	for _, d := range f.Damaged {
		if d.InTrash {
			found = append(found, damagedInTrash(d))
			continue
		}
		message := fmt.Sprintf("The bytes of %q in the bucket %s are not those that were stored: upload it again, and check the disk.", d.Key, d.Bucket.Name)
		if d.Away {
			message = fmt.Sprintf("The bytes of %q in the bucket %s were in the off-site copy only, and are damaged or missing there: upload it again, and have the operator run "+
				"`holdfast offsite verify`.", d.Key, d.Bucket.Name)
		}
		found = append(found, model.Recommendation{
			Code: "damaged_object", Severity: model.SeverityCritical, Category: model.CategoryBackup,
			Title:    "An object is damaged",
			Message:  message,
			Resource: model.Resource{Type: model.ResourceObject, ID: d.Bucket.ID, Name: d.Key},
			Object:   d.Key,
			Evidence: map[string]any{"found_at": d.FoundAt, "size_bytes": d.SizeBytes},
		})
	}
	return found
}

// damagedInTrash reports a deleted object that cannot be brought back as it was.
func damagedInTrash(d DamagedObject) model.Recommendation {
	return model.Recommendation{
		Code: "damaged_object", Severity: model.SeverityWarning, Category: model.CategoryBackup,
		Title:    "An object in the trash is damaged",
		Message:  fmt.Sprintf("%q of the bucket %s is in the trash, and its bytes are not those that were stored: a restore does not bring them back. Check the disk, and purge the object if nothing needs it.", d.Key, d.Bucket.Name),
		Resource: model.Resource{Type: model.ResourceObject, ID: d.Bucket.ID, Name: d.Key},
		Object:   d.Key,
		Evidence: map[string]any{"found_at": d.FoundAt, "size_bytes": d.SizeBytes, "in_trash": true},
	}
}

// damagedJournal reports uploads and deletions that were acknowledged and then lost to
// damage. Their organization is unknown.
func damagedJournal(f Facts) []model.Recommendation {
	if len(f.DamagedJournal) == 0 {
		return nil
	}
	return []model.Recommendation{{
		Code: "damaged_journal", Severity: model.SeverityCritical, Category: model.CategoryBackup,
		Title: "Uploads or deletions of objects were lost",
		Message: fmt.Sprintf("Records of objects, of whichever organization, could not be read or carried out (%d): compare the newest objects with what was sent, "+
			"and check the disk. The log has the positions.", len(f.DamagedJournal)),
		Evidence: map[string]any{"records": len(f.DamagedJournal), "found_at": f.DamagedJournal[0]},
	}}
}
