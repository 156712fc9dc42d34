package recovery

import (
	"time"

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
// stored chunks, the archived WAL and the exports. Each database's files were
// measured at most measuredFor ago.
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
		total += s.occupied(db.ID)
	}
	return total, nil
}

// measuredFor is how long the measurement of a database's backups is used. It takes
// about 5 µs for each file, and anybody who may read the usage can ask for it.
const measuredFor = 10 * time.Second

// measurement is what the backups of a database occupied at a time.
type measurement struct {
	bytes int64
	at    time.Time
}

// occupied returns how many bytes of the disk the backups of a database occupy.
// What cannot be read is logged and counts as nothing, so that one damaged
// directory does not hide the figures of all others.
func (s *Service) occupied(database string) int64 {
	if found, ok := s.measured.Load(database); ok {
		m := found.(measurement)
		if !core.IsPast(s.core.Clock(), m.at, measuredFor) {
			return m.bytes
		}
	}
	bytes, err := durable.MeasureOccupied(s.BackupDirectory(database))
	if err != nil {
		s.core.Log.Error("measure the backups of a database", "database", database, "error", err)
	}
	s.measured.Store(database, measurement{bytes, s.core.Clock()})
	return bytes
}
