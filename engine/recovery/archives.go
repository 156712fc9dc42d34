package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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

// Each database has a directory of backups outside its instance: repository/ holds the chunks, wal/ the WAL of all its
// generations. The directory is created with the database, stays while it is in the trash, and is removed with it.

// walSlot is the replication slot that keeps WAL until it is archived.
const walSlot = databases.WALSlot

// WALDirectory is the directory of the WAL below a database's backups.
const WALDirectory = "wal"

// BackupDirectory returns the directory of a database's backups and WAL.
func (s *Service) BackupDirectory(database string) string {
	return filepath.Join(s.core.Config.DataDir, "backups", database)
}

// archiveSet holds the open repository and WAL archive of each database, from
// their first use until the database is removed or the engine closes.
type archiveSet struct {
	open     sync.Map                              // *databaseArchive by the database's id
	observer atomic.Pointer[func(database string)] // is told of changes
}

// databaseArchive holds the open parts of one database's backups. Opening or
// closing a part requires mu.
type databaseArchive struct {
	mu                 sync.Mutex
	repository         *repository.Repository
	wal                *wal.Archive
	receiver           *wal.Receiver
	receivedGeneration int // whose WAL the receiver reads
	// failures and lastFailed cover the previous receivers.
	failures   int
	lastFailed time.Time

	keepsWAL atomic.Bool // nothing is pruned until the engine closes

	pruning sync.Mutex // held while WAL is pruned
	holds   int        // of what replays the WAL; nothing is pruned while there are any

	checking  sync.Mutex // held while the WAL is checked
	checked   time.Time  // when it was checked last, zero if it was not
	readSince time.Time  // when all of it was read last or, at first, when it was checked first
}

// hold keeps the WAL of the database from being pruned until release is called.
func (a *databaseArchive) hold() (release func()) {
	add := func(n int) {
		a.pruning.Lock()
		defer a.pruning.Unlock()
		a.holds += n
	}
	add(1)
	return sync.OnceFunc(func() { add(-1) })
}

func (s *archiveSet) get(database string) *databaseArchive {
	a, _ := s.open.LoadOrStore(database, &databaseArchive{})
	return a.(*databaseArchive)
}

// known returns the archive of a database, nil if none was opened.
func (s *archiveSet) known(database string) *databaseArchive {
	a, _ := s.open.Load(database)
	archive, _ := a.(*databaseArchive)
	return archive
}

// Repository returns the repository of a database's backups. It opens it on
// first use; CloseArchives closes it.
func (s *Service) Repository(database string) (*repository.Repository, error) {
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.openRepository(a, database)
}

// OpenedRepository returns the repository of a database's backups, nil if it is not open.
func (s *Service) OpenedRepository(database string) *repository.Repository {
	a := s.archives.known(database)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.repository
}

// RecoverRepository recovers the repository of a database's backups if a failed sync has made it read-only.
func (s *Service) RecoverRepository(db model.Database) error {
	repo := s.OpenedRepository(db.ID)
	if repo == nil || !repo.FailedSync() || s.isAway(db.ID) {
		return nil
	}
	release, err := s.core.Claims.Take(databases.BackupClaim(db.ID), "the recovery of its backups")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	recovered, err := repo.Recover()
	if errors.Is(err, repository.ErrBusy) || err == nil && !recovered {
		return nil
	}
	if err != nil {
		return err
	}
	s.core.Log.Info("backups can be made again after a failed sync", "database", db.ID)
	return s.reconcileRepository(db)
}

// openRepository opens the repository of a; the caller holds mu.
func (s *Service) openRepository(a *databaseArchive, database string) (*repository.Repository, error) {
	if a.repository != nil {
		return a.repository, nil
	}
	dir, err := s.makeBackupDirectory(database)
	if err != nil {
		return nil, err
	}
	if a.repository, err = repository.Open(filepath.Join(dir, "repository")); err != nil {
		return nil, err
	}
	return a.repository, nil
}

// makeBackupDirectory creates the directory of a database's backups, unless their files are being fetched, or the database
// is purged: RemoveBackups may already have removed the directory. The caller holds mu of the database's archive.
func (s *Service) makeBackupDirectory(database string) (string, error) {
	if err := s.refuseAway(database); err != nil {
		return "", err
	}
	if _, err := s.unpurged(database); err != nil {
		return "", err
	}
	dir := s.BackupDirectory(database)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make directory of backups: %w", err)
	}
	return dir, nil
}

// unpurged returns the record of a database, or that there is none once it is being removed for good.
func (s *Service) unpurged(database string) (model.Database, error) {
	db, err := s.databases.Record(database)
	if errors.Is(err, meta.ErrNotFound) || err == nil && db.Trash != nil && !db.Trash.Until.After(db.Trash.At) {
		return db, model.NotFound(model.ResourceDatabase, database)
	}
	return db, err
}

// WALArchive returns the archive of a database's WAL. It opens it on first use;
// CloseArchives closes it.
func (s *Service) WALArchive(database string) (*wal.Archive, error) {
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	return s.openWAL(a, database)
}

// openWAL opens the WAL of a; the caller holds mu.
func (s *Service) openWAL(a *databaseArchive, database string) (*wal.Archive, error) {
	if a.wal != nil {
		return a.wal, nil
	}
	dir, err := s.makeBackupDirectory(database)
	if err != nil {
		return nil, err
	}
	if a.wal, err = wal.Open(filepath.Join(dir, WALDirectory), wal.Options{Logger: s.core.Log.With("database", database), FS: s.WALFiles}); err != nil {
		return nil, err
	}
	s.archives.changed(database)
	return a.wal, nil
}

// ReceiveWAL starts to receive the WAL of the database's generation, unless it already does. The receiver reconnects by
// itself whatever happens to the instance. One that a failed sync has ended is replaced. The WAL of sandboxes is not archived.
func (s *Service) ReceiveWAL(db model.Database) error {
	if db.Sandbox {
		return nil
	}
	a := s.archives.get(db.ID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver != nil && a.receivedGeneration == db.Generation && !a.canReopen() {
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
		// A restore has already created its generation with a parent. Create refuses a damaged generation.
		if err := archive.Create(db.Generation, nil); err != nil {
			return err
		}
	}
	a.receiver, err = wal.OpenReceiver(wal.ReceiverOptions{
		Archive: archive, Generation: db.Generation, Slot: walSlot, Dir: s.serverWAL(db),
		SQL: func(ctx context.Context) (*pgx.Conn, error) {
			return s.databases.Instances.Connect(ctx, db.ID, databases.Maintenance)
		},
		Lost:   func(gap wal.Gap) { s.core.Background(func(context.Context) { s.WALLost(db, gap) }) },
		Logger: s.core.Log.With("database", db.ID),
	})
	a.receivedGeneration = db.Generation
	return err
}

// canReopen reports whether a failed sync has ended the receiver, so that another one can continue. The caller holds mu.
func (a *databaseArchive) canReopen() bool {
	return a.receiver != nil && errors.Is(a.receiver.Failure(), wal.ErrSync)
}

// ReopenReceiver opens the WAL receiver of a database anew if a failed sync has ended it.
func (s *Service) ReopenReceiver(id string) error {
	a := s.archives.known(id)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	ended := a.canReopen()
	a.mu.Unlock()
	if !ended {
		return nil
	}
	release, err := s.core.Claims.TakeBriefly(id, "the archiving of its WAL")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	db, err := s.databases.Record(id)
	if err != nil || db.Trash != nil {
		return err
	}
	return s.ReceiveWAL(db)
}

// awaitReceiver returns the receiver of a generation of a database whose server runs, as soon as it is open. Without a claim on
// the database it must not be opened: the server may be about to stop for good, and a writer of its generation is in the way then.
func (s *Service) awaitReceiver(ctx context.Context, db model.Database) (liveWAL, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.databases.Timeouts.WAL, errors.New("the instance is being stopped"))
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	a := s.archives.get(db.ID)
	for {
		if err := s.ReopenReceiver(db.ID); err != nil {
			return liveWAL{}, err
		}
		a.mu.Lock()
		receiver, generation := a.receiver, a.receivedGeneration
		a.mu.Unlock()
		if receiver != nil && generation == db.Generation {
			return liveWAL{receiver}, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return liveWAL{}, fmt.Errorf("wait for the WAL receiver: %w", context.Cause(ctx))
		}
	}
}

// ReceivedGeneration returns the generation of a database whose WAL is being or was last received, 0 for none.
func (s *Service) ReceivedGeneration(database string) int {
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.receivedGeneration
}

// serverWAL returns the directory into which the server of the database's
// generation writes its WAL.
func (s *Service) serverWAL(db model.Database) string {
	return filepath.Join(s.databases.DataDirectory(db.ID, db.Generation), "pg_wal")
}

// WALLost says that the archive has a gap and starts a backup: later times can be restored only from a newer backup.
func (s *Service) WALLost(db model.Database, gap wal.Gap) {
	call := s.core.System(model.ActionWALGap, db.Organization, databases.DatabaseResource(db))
	call.Note("from", gap.From.String())
	call.Note("to", gap.To.String())
	call.Note("reason", gap.Reason)
	s.core.Finish(call, nil)
	s.core.Log.Error("WAL is lost: a new backup is made, and times in between cannot be restored",
		"database", db.ID, "from", gap.From, "to", gap.To, "reason", gap.Reason)
	s.core.Emit(model.Event{
		Type: model.EventRecoveryGap, Organization: db.Organization, Resource: databases.DatabaseResource(db),
		Message: fmt.Sprintf("WAL of the database %s is lost: times between %s and the next backup cannot be restored.", db.Name, gap.At.Format(time.RFC3339)),
	})
	s.backUpSoon(db.ID)
}

// liveWAL implements backup.WAL over the receiver of a running database.
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
	a := s.archives.get(db.ID)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.receiver == nil {
		return liveWAL{}, errors.New("the instance is being stopped")
	}
	return liveWAL{a.receiver}, nil
}

// WALStatus returns the status of a database's WAL receiver, false if there is none. Failures covers all its receivers
// since the appliance started.
func (s *Service) WALStatus(database string) (wal.Status, bool) {
	a := s.archives.get(database)
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
	a := s.archives.get(database)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.closeParts(); err != nil {
		return err
	}
	if err := s.databases.Discard(s.BackupDirectory(database), database+"-backups"); err != nil {
		return fmt.Errorf("remove backups: %w", err)
	}
	s.archives.open.Delete(database)
	s.measured.Delete(database)
	s.unusedUntil.Delete(database)
	s.archives.changed(database)
	return nil
}

// PruneWAL removes the WAL that no kept backup needs. It keeps the newest segment of the current generation and of the
// one that an undo would bring back: the server continues there, and the next backup begins after it. It removes
// nothing unless all backups could be reconciled with their records, and unless the records are durable.
func (s *Service) PruneWAL(database string) error {
	a := s.archives.get(database)
	a.pruning.Lock()
	defer a.pruning.Unlock()
	if a.holds > 0 {
		return nil
	}
	db, err := s.databases.Record(database)
	if errors.Is(err, meta.ErrNotFound) {
		return nil // the database and all of its WAL were removed meanwhile
	}
	if err != nil || db.Sandbox || s.isAway(database) || s.archives.get(database).keepsWAL.Load() {
		return err
	}
	records, err := s.backupsOf(database)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(records, func(b model.Backup) bool { return b.Status == model.BackupPending || b.Status == model.BackupRunning }) {
		return nil // it needs the WAL from a start that is not recorded yet
	}
	keep, err := keptWAL(db, records)
	if err != nil {
		return err
	}
	archive, err := s.WALArchive(database)
	if err != nil {
		return err
	}
	if err := s.core.Meta.Durable(); err != nil { // what the records said
		return err
	}
	s.core.RemovalLock.RLock()
	defer s.core.RemovalLock.RUnlock()
	_, err = archive.Prune(keep)
	return err
}

// keptWAL returns the positions from which the WAL of a database with some backups is needed.
func keptWAL(db model.Database, backups []model.Backup) ([]wal.Keep, error) {
	keep := []wal.Keep{{Generation: db.Generation, Start: wal.End}}
	if db.Replaced != nil {
		keep = append(keep, wal.Keep{Generation: db.Replaced.Generation, Start: wal.End})
	}
	for _, b := range backups {
		if b.Status != model.BackupCompleted || b.DeletionPending {
			continue
		}
		start, err := xlog.ParseLSN(b.StartLSN)
		if err != nil {
			return nil, fmt.Errorf("backup %s: %w", b.ID, err)
		}
		keep = append(keep, wal.Keep{Generation: b.Generation, Start: start})
	}
	return keep, nil
}
