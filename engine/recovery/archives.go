package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup"
	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// A database's backups lie in a directory of their own, outside its instance:
// repository/ holds the chunks, wal/ the WAL of all its generations, each an
// generation of the archive. It is made with the database, stays in the trash
// with it, and goes with it.

// walSlot is the replication slot that keeps WAL until it is archived.
const walSlot = "holdfast"

// WalDirectory is where the WAL lies among a database's backups.
const WalDirectory = "wal"

func (s *Service) BackupDirectory(database string) string {
	return filepath.Join(s.core.Config.DataDir, "backups", database)
}

// Archives are what is open of each database's backups, from its first use
// until the database or the engine ends.
type Archives struct {
	mu   sync.Mutex
	open map[string]*Archive
}

// Archive is one database's. Whoever opens or closes a part of it holds mu.
type Archive struct {
	mu         sync.Mutex
	repository *repository.Repository
	wal        *wal.Archive
	receiver   *wal.Receiver
	Receives   int // the generation
	// failures and lastFailed are of the receivers there were before this one.
	failures   int
	lastFailed time.Time
	keepsWAL   bool

	repositoryBytes, walBytes occupancy // on disk
}

// keepWAL keeps all WAL there is until the engine ends.
func (a *Archive) keepWAL() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keepsWAL = true
}

func (a *Archive) prunesWAL() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.keepsWAL
}

func newArchives() *Archives { return &Archives{open: map[string]*Archive{}} }

func (s *Archives) Get(database string) *Archive {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[database] == nil {
		s.open[database] = &Archive{}
	}
	return s.open[database]
}

func (s *Archives) all() []*Archive {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Archive
	for _, a := range s.open {
		all = append(all, a)
	}
	return all
}

func (s *Archives) forget(database string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, database)
}

// CloseReceiver ends what receives WAL, if anything does.
func (a *Archive) CloseReceiver() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver == nil {
		return nil
	}
	return a.endReceiver()
}

// endReceiver ends the receiver that is there, and remembers how often it failed;
// the caller holds mu.
func (a *Archive) endReceiver() error {
	status := a.receiver.Status()
	a.failures += status.Failures
	if status.LastFailed.After(a.lastFailed) {
		a.lastFailed = status.LastFailed
	}
	err := a.receiver.Close()
	a.receiver = nil
	return err
}

// close closes everything. Nobody uses it any more.
func (a *Archive) close() error {
	err := a.CloseReceiver()
	a.mu.Lock()
	defer a.mu.Unlock()
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

// CloseReceivers ends what receives WAL; the servers keep what comes later.
func (s *Service) CloseReceivers() error {
	return s.eachArchive((*Archive).CloseReceiver)
}

func (s *Service) CloseArchives() error {
	return s.eachArchive((*Archive).close)
}

func (s *Service) eachArchive(do func(*Archive) error) error {
	all := s.Archives.all()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for n, a := range all {
		wg.Go(func() { errs[n] = do(a) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Repository returns the Repository of a database's backups.
func (s *Service) Repository(database string) (*repository.Repository, error) {
	a := s.Archives.Get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.repository != nil {
		return a.repository, nil
	}
	dir := s.BackupDirectory(database)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of backups: %w", err)
	}
	var err error
	if a.repository, err = repository.Open(filepath.Join(dir, "repository")); err != nil {
		return nil, err
	}
	a.repositoryBytes.follow(a.repository.Occupied)
	return a.repository, nil
}

// WalArchive returns the archive of a database's WAL.
func (s *Service) WalArchive(database string) (*wal.Archive, error) {
	a := s.Archives.Get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.openWAL(a, database)
}

// openWAL opens the WAL of a; the caller holds mu.
func (s *Service) openWAL(a *Archive, database string) (*wal.Archive, error) {
	if a.wal != nil {
		return a.wal, nil
	}
	dir := s.BackupDirectory(database)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of backups: %w", err)
	}
	var err error
	if a.wal, err = wal.Open(filepath.Join(dir, WalDirectory), wal.Options{Logger: s.core.Log.With("database", database)}); err != nil {
		return nil, err
	}
	a.walBytes.follow(a.wal.Occupied)
	return a.wal, nil
}

// ReceiveWAL sees that the WAL of the database's generation is received. The
// receiver comes back by itself whatever happens to the instance. Nobody wants
// that of a sandbox.
func (s *Service) ReceiveWAL(db model.Database) error {
	if db.Sandbox {
		return nil
	}
	a := s.Archives.Get(db.ID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver != nil && a.Receives == db.Generation {
		return nil
	}
	archive, err := s.openWAL(a, db.ID)
	if err != nil {
		return err
	}
	if a.receiver != nil {
		if err := a.endReceiver(); err != nil {
			return fmt.Errorf("close WAL receiver: %w", err)
		}
	}
	if _, err := archive.Generation(db.Generation); err != nil {
		// A restored generation has been made with its parent, and a damaged one is
		// refused.
		if err := archive.Create(db.Generation, nil); err != nil {
			return err
		}
	}
	a.receiver, err = wal.OpenReceiver(wal.ReceiverOptions{
		Archive: archive, Generation: db.Generation, Slot: walSlot, Dir: s.serverWAL(db),
		SQL: func(ctx context.Context) (*pgx.Conn, error) {
			return s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
		},
		Lost:   func(gap wal.Gap) { s.core.Background(func(context.Context) { s.WalLost(db, gap) }) },
		Logger: s.core.Log.With("database", db.ID),
	})
	a.Receives = db.Generation
	return err
}

// ReceivedGeneration returns the generation of a database whose WAL is received
// or was received last, 0 when none was.
func (s *Service) ReceivedGeneration(database string) int {
	a := s.Archives.Get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Receives
}

// serverWAL is where the server of the database's generation writes its WAL.
func (s *Service) serverWAL(db model.Database) string {
	return filepath.Join(s.databases.DataDirectory(db.ID, db.Generation), "pg_wal")
}

// StopReceiving ends the receiver of a database whose instance has stopped.
func (s *Service) StopReceiving(database string) error {
	s.Archives.mu.Lock()
	a := s.Archives.open[database]
	s.Archives.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.CloseReceiver()
}

// WalLost records that a stretch of WAL will never be in the archive, and has
// a backup made, because restores go on from there only with a new one.
func (s *Service) WalLost(db model.Database, gap wal.Gap) {
	call := s.core.System(model.ActionWALGap, db.Organization, databases.DatabaseResource(db))
	call.Note("from", gap.From.String())
	call.Note("to", gap.To.String())
	call.Note("reason", gap.Reason)
	s.core.Finish(call, nil)
	s.core.Log.Error("WAL is lost: a new backup is made, and times in between cannot be restored",
		"database", db.ID, "from", gap.From, "to", gap.To, "reason", gap.Reason)
	s.core.Tell(model.Event{
		Type: model.EventRecoveryGap, Organization: db.Organization, Resource: databases.DatabaseResource(db),
		Message: fmt.Sprintf("WAL of the database %s is lost: times between %s and the next backup cannot be restored.", db.Name, gap.At.Format(time.RFC3339)),
	})
	s.backUpSoon(db.ID)
}

// liveWAL is what a running backup needs of the archive.
type liveWAL struct{ *wal.Receiver }

// ChangedPages implements backup.WAL.
func (l liveWAL) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (backup.Changes, error) {
	return l.Receiver.ChangedPages(ctx, timeline, from, to)
}

// liveWAL returns the receiver of a database's generation.
func (s *Service) liveWAL(db model.Database) (liveWAL, error) {
	if err := s.ReceiveWAL(db); err != nil {
		return liveWAL{}, err
	}
	a := s.Archives.Get(db.ID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver == nil {
		return liveWAL{}, errors.New("the instance is being stopped")
	}
	return liveWAL{a.receiver}, nil
}

// WALStatus is how the receiver of a database is; false when there is none. Its
// failures are those of all receivers since the appliance was started.
func (s *Service) WALStatus(database string) (wal.Status, bool) {
	a := s.Archives.Get(database)
	a.mu.Lock()
	receiver, before := a.receiver, wal.Status{Failures: a.failures, LastFailed: a.lastFailed}
	a.mu.Unlock()
	if receiver == nil {
		return before, false
	}
	status := receiver.Status()
	status.Failures += before.Failures
	if status.LastFailed.IsZero() {
		status.LastFailed = before.LastFailed
	}
	return status, true
}

// RemoveBackups removes all of a database's backups.
func (s *Service) RemoveBackups(database string) error {
	if err := s.Archives.Get(database).close(); err != nil {
		return err
	}
	s.Archives.forget(database)
	if err := s.databases.Discard(s.BackupDirectory(database), database+"-backups"); err != nil {
		return fmt.Errorf("remove backups: %w", err)
	}
	return nil
}

// PruneWAL removes the WAL that no kept backup needs. The newest segment of the
// data directory that serves stays, and of the one that an undo would bring
// back: there the server goes on, and behind it the next backup begins. All of
// it stays where not all backups could be settled.
func (s *Service) PruneWAL(database string) error {
	db, err := s.databases.Record(database)
	if errors.Is(err, meta.ErrNotFound) {
		return nil // it was deleted meanwhile, with all of its WAL
	}
	if err != nil || db.Sandbox || !s.Archives.Get(database).prunesWAL() {
		return err
	}
	records, err := s.backupRecords(database)
	if err != nil {
		return err
	}
	keep := []wal.Keep{{Generation: db.Generation, Start: wal.End}}
	if db.Replaced != nil {
		keep = append(keep, wal.Keep{Generation: db.Replaced.Generation, Start: wal.End})
	}
	for _, b := range records {
		if b.Status == model.BackupPending || b.Status == model.BackupRunning {
			return nil // it needs the WAL from a start that is not recorded yet
		}
		if b.Status != model.BackupCompleted || b.DeletionPending {
			continue
		}
		start, err := xlog.ParseLSN(b.StartLSN)
		if err != nil {
			return fmt.Errorf("backup %s: %w", b.ID, err)
		}
		keep = append(keep, wal.Keep{Generation: b.Generation, Start: start})
	}
	archive, err := s.WalArchive(database)
	if err != nil {
		return err
	}
	s.core.RemovalLock.RLock()
	defer s.core.RemovalLock.RUnlock()
	_, err = archive.Prune(keep)
	return err
}
