package recovery

import (
	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/durable"
)

// BackupBytes returns how many bytes of the disk an organization's backups
// occupy, including those of databases in the trash.
func (s *Service) BackupBytes(organization string) (int64, error) {
	var all []model.Database
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		for _, index := range []string{meta.ByOrganization, meta.InTrash} {
			databases, err := core.AllBy(tx.Databases(), index, meta.Key(organization))
			if err != nil {
				return err
			}
			all = append(all, databases...)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return s.BytesOf(all)
}

// BytesOf returns how many bytes of the disk the backups of databases occupy: the
// stored chunks, the archived WAL and the exports. It looks up every file of the
// backups, which takes about 5 µs each. What cannot be read of one database is
// logged, and counts as nothing.
func (s *Service) BytesOf(databases []model.Database) (total int64, err error) {
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		for _, db := range databases {
			exports, err := core.AllUnder(tx.Exports(), db.ID)
			if err != nil {
				return err
			}
			for _, x := range exports {
				if x.Blob != "" {
					total += blobstore.Occupied(x.SizeBytes)
				}
			}
		}
		return nil
	}); err != nil {
		return 0, err
	}
	for _, db := range databases {
		occupied, err := durable.MeasureOccupied(s.BackupDirectory(db.ID))
		if err != nil { // the others count all the same
			s.core.Log.Error("measure the backups of a database", "database", db.ID, "error", err)
		}
		total += occupied
	}
	return total, nil
}
