package recovery

import (
	"path/filepath"
	"sync/atomic"

	"holdfast/backup/wal"
	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
)

// BackupBytes returns how many bytes of the disk an organization's backups
// occupy: the stored chunks, the archived WAL and the exports of its databases,
// including those in the trash. It reads counters that writers and removers
// maintain, so it costs a few reads of the metadata and no directory walk.
func (s *Service) BackupBytes(organization string) (total int64, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) error {
		for _, index := range []string{meta.ByOrganization, meta.InTrash} {
			databases, err := core.AllBy(tx.Databases(), index, meta.Key(organization))
			if err != nil {
				return err
			}
			for _, db := range databases {
				occupied, err := s.DatabaseBackupBytes(tx, db.ID)
				if err != nil {
					return err
				}
				total += occupied
			}
		}
		return nil
	})
	return total, err
}

// DatabaseBackupBytes is BackupBytes for one database.
func (s *Service) DatabaseBackupBytes(tx *meta.Tx, database string) (int64, error) {
	exports, err := core.AllUnder(tx.Exports(), database)
	if err != nil {
		return 0, err
	}
	occupied := s.archives.occupied(database)
	for _, x := range exports {
		if x.Blob != "" {
			occupied += blobstore.Occupied(x.SizeBytes)
		}
	}
	return occupied, nil
}

// occupied returns how many bytes a database's repository and WAL archive occupy
// on disk.
func (s *archiveSet) occupied(database string) (bytes int64) {
	a := s.known(database)
	if a == nil {
		return 0
	}
	for _, part := range []*atomic.Pointer[func() int64]{&a.repositoryBytes, &a.walBytes} {
		if count := part.Load(); count != nil {
			bytes += (*count)()
		}
	}
	return bytes
}

// measureArchived measures at start how much a database's WAL archive occupies.
// The archive of a database in the trash is never opened; one that is opened
// replaces this figure with its own counter.
func (s *Service) measureArchived(database string) error {
	occupied, err := wal.Occupied(filepath.Join(s.BackupDirectory(database), WALDirectory))
	s.archives.get(database).walBytes.Store(new(func() int64 { return occupied }))
	return err
}
