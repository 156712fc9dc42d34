package recovery

import (
	"errors"
	"sync"
)

// closeReceiver closes the WAL receiver, and reports whether there was one.
func (a *databaseArchive) closeReceiver() (had bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	had = a.receiver != nil
	return had, a.endReceiver()
}

// endReceiver closes the receiver, if there is one, and records how often it failed. The caller holds mu.
func (a *databaseArchive) endReceiver() error {
	if a.receiver == nil {
		return nil
	}
	status := a.receiver.Status()
	a.failures += status.Failures
	if status.LastFailed.After(a.lastFailed) {
		a.lastFailed = status.LastFailed
	}
	err := a.receiver.Close()
	a.receiver = nil
	return err
}

// close closes all parts. The caller makes sure that they are no longer used.
func (a *databaseArchive) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closeParts()
}

// closeParts is close for a caller that holds mu.
func (a *databaseArchive) closeParts() error {
	err := a.endReceiver()
	if a.wal != nil {
		err = errors.Join(err, a.wal.Close())
		a.wal = nil
	}
	if a.repository != nil {
		err = errors.Join(err, a.repository.Close())
		a.repository = nil
	}
	return err
}

// CloseReceivers closes all WAL receivers and returns the databases that had one. Their servers keep the WAL that they write
// afterwards.
func (s *Service) CloseReceivers() (received []string, err error) {
	var mu sync.Mutex
	err = s.eachArchive(func(database string, a *databaseArchive) error {
		had, err := a.closeReceiver()
		if had {
			mu.Lock()
			defer mu.Unlock()
			received = append(received, database)
		}
		return err
	})
	return received, err
}

// ArchiveRest archives what the servers of databases wrote after their receivers were closed and until they stopped. What is
// left out stays in the data directory, and the next start archives it.
func (s *Service) ArchiveRest(received []string) {
	var all sync.WaitGroup
	for _, id := range received {
		all.Go(func() {
			db, err := s.databases.Record(id)
			if err == nil {
				err = s.drain(db)
			}
			if err != nil {
				s.core.Log.Warn("the last WAL will be archived at the next start", "database", id, "reason", err)
			}
		})
	}
	all.Wait()
}

// CloseArchives closes all repositories, WAL archives and receivers.
func (s *Service) CloseArchives() error {
	return s.eachArchive(func(_ string, a *databaseArchive) error { return a.close() })
}

func (s *Service) eachArchive(do func(database string, a *databaseArchive) error) error {
	var mu sync.Mutex
	var errs error
	var all sync.WaitGroup
	for id, a := range s.archives.open.Range {
		all.Go(func() {
			err := do(id.(string), a.(*databaseArchive))
			mu.Lock()
			defer mu.Unlock()
			errs = errors.Join(errs, err)
		})
	}
	all.Wait()
	return errs
}

// StopReceiving closes the WAL receiver of a database whose instance has stopped.
func (s *Service) StopReceiving(database string) error {
	if a := s.archives.known(database); a != nil {
		_, err := a.closeReceiver()
		return err
	}
	return nil
}
