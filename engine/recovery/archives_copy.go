package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// ObserveArchives has changed called when the WAL archive of a database was opened, its backups have changed, or they
// were removed with the database. changed must not block. There is one observer at a time; end ends its observation.
func (s *Service) ObserveArchives(changed func(database string)) (end func()) {
	s.archives.observer.Store(&changed)
	return func() { s.archives.observer.CompareAndSwap(&changed, nil) }
}

func (s *archiveSet) changed(database string) {
	if observer := s.observer.Load(); observer != nil {
		(*observer)(database)
	}
}

// ArchivedDatabases returns the databases that have a directory of backups, those in the trash too.
func (s *Service) ArchivedDatabases() (ids []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(s.BackupDirectory("id")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// KeptBackups returns the backups of a database that must be here whole: the completed ones that are not being removed. There are none
// of a database that is removed for good.
func (s *Service) KeptBackups(database string) ([]model.Backup, error) {
	if gone, err := s.IsPurged(database); gone || err != nil {
		return nil, err
	}
	return s.restorableBackups(database)
}

// NeedsWAL returns a function that reports whether the backups of a database need a file of its WAL archive, which may lack it.
func (s *Service) NeedsWAL(database string, archive *wal.Archive) (func(wal.StoredFile) bool, error) {
	db, err := s.unpurged(database)
	if model.CodeOf(err) == model.CodeNotFound {
		return func(wal.StoredFile) bool { return false }, nil
	}
	if err != nil {
		return nil, err
	}
	backups, err := s.backupsOf(database)
	if err != nil {
		return nil, err
	}
	keep, err := keptWAL(db, backups)
	return archive.Needs(keep), err
}

// IsPurged reports whether a database is gone or being removed for good, with its backups.
func (s *Service) IsPurged(database string) (bool, error) {
	_, err := s.unpurged(database)
	if model.CodeOf(err) == model.CodeNotFound {
		return true, nil
	}
	return false, err
}

// Archives returns the WAL archive and the repository of a database, or fs.ErrNotExist if its directory of backups was
// removed. It opens them; CloseArchives closes them.
func (s *Service) Archives(database string) (*wal.Archive, *repository.Repository, error) {
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := os.Stat(s.BackupDirectory(database)); err != nil {
		if errors.Is(err, fs.ErrNotExist) && a.receiver == nil { // else CloseArchives has to find it
			s.archives.open.CompareAndDelete(database, a)
		}
		return nil, nil, fmt.Errorf("open the backups of a database: %w", err)
	}
	archive, err := s.openWAL(a, database)
	if err != nil {
		return nil, nil, err
	}
	r, err := s.openRepository(a, database)
	return archive, r, err
}
