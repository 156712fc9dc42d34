package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
)

// Options of Take.
type Options struct {
	// ID names the backup in the repository; it must be fit for a file's name.
	ID string
	// Label is what the server notes in the backup, at most 1000 bytes.
	Label string
	// Type is kept in the manifest, for a caller that has lost its own record.
	Type string
	// Generation is the data directory's in the WAL archive; it is kept with
	// the backup, for who has nothing but the two, and for the next one.
	Generation int
	// Base is an earlier backup of the same cluster in the repository, best the
	// latest: what is as it was there is not stored again, and where the WAL
	// says what changed since, nothing else is read. "" and one that is not
	// there mean none.
	Base string
	// Whole has everything read and compared, whatever the WAL says changed: the
	// guard to be set every so often against what no WAL tells of, bit rot for
	// one.
	Whole bool
	// Rate bounds how many bytes a second are read; 0 means no bound.
	Rate int64
	// Patience is how long the WAL up to the backup's start, and to its stop, may
	// take to be archived; 0 means no bound.
	Patience time.Duration
	// Workers is how many files are read at once; 0 means one for each
	// processor, 8 at most.
	Workers int

	// Progress, if set, is called for every MiB, and at the end, with the bytes
	// read and how many there will be, one call at a time. The backup waits
	// for it.
	Progress func(doneBytes, totalBytes int64)
}

// ErrNotArchived says that the WAL did not come within [Options].Patience.
var ErrNotArchived = errors.New("it did not come")

// Result describes a backup that is complete.
type Result struct {
	ID              string
	ManifestBLAKE3  string // hex
	SizeBytes       int64  // of the files
	StoredBytes     int64  // what this backup added to the repository
	ReadBytes       int64  // of the data directory
	PostgresVersion string // the server's, "15.18"
	Timeline        uint32
	Start, Stop     xlog.LSN
	// WholeReason says why everything was read; "" when only what changed was.
	WholeReason string
}

// Take makes a backup of the server that conn leads to into repo. The server
// goes on working meanwhile, and must be on this machine, its data directory
// readable by this process.
//
// conn is a session of a superuser of PostgreSQL 15 or newer; nobody else uses
// it meanwhile. The caller closes it. After an error it is closed already,
// which ends the backup on the server, too; a retry needs a new one. Everything
// may be retried: a Take that fails or whose ctx ends leaves nothing that
// counts.
//
// A page whose checksum is wrong is an error that says which. Of a cluster with
// tablespaces no backup is made.
func Take(ctx context.Context, conn *pgx.Conn, repo *repository.Repository, archive WAL, opts Options) (Result, error) {
	t := &taking{server: &server{conn: conn}, repo: repo, archive: archive, opts: opts, progress: &progress{tell: opts.Progress}}
	result, err := t.run(ctx)
	if err != nil {
		t.server.abandon()
		return Result{}, fmt.Errorf("take base backup: %w", err)
	}
	return result, nil
}

// taking is a backup being made.
type taking struct {
	server   *server
	repo     *repository.Repository
	archive  WAL
	opts     Options
	progress *progress

	writer  *repository.Writer
	root    *os.Root
	base    *base
	whole   string // why everything is read
	started time.Time
}

func (t *taking) run(ctx context.Context) (result Result, err error) {
	if err := checkLabel(t.opts.Label); err != nil {
		return result, err
	}
	if t.base, err = openBase(t.repo, t.opts.Base); err != nil {
		return result, err
	}
	defer t.base.close()
	if t.writer, err = t.repo.Begin(); err != nil {
		return result, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.writer.Abort())
		}
	}()
	t.started = time.Now().UTC()
	if err := t.server.begin(ctx, t.opts.Label); err != nil {
		return result, err
	}
	if t.root, err = os.OpenRoot(t.server.dir); err != nil {
		return result, fmt.Errorf("open data directory: %w", err)
	}
	defer t.root.Close()
	return t.copy(ctx)
}

// copy reads the files, ends the backup on the server and commits it.
func (t *taking) copy(ctx context.Context) (Result, error) {
	control, err := readControl(t.root)
	if err != nil {
		return Result{}, err
	}
	if err := t.archived(ctx, t.server.start); err != nil {
		return Result{}, err
	}
	if err := t.learnChanges(ctx, control); err != nil {
		return Result{}, err
	}
	entries, err := listFiles(ctx, t.root)
	if err != nil {
		return Result{}, err
	}
	c := newCopying(t, entries)
	if err := c.run(ctx); err != nil {
		return Result{}, err
	}
	end, err := t.end(ctx, c)
	if err != nil {
		return Result{}, err
	}
	if err := t.archived(ctx, end.at); err != nil {
		return Result{}, err
	}
	if err := t.archive.Covers(t.server.timeline, t.server.start, end.at); err != nil {
		return Result{}, fmt.Errorf("the backup needs all WAL from %v to %v: %w", t.server.start, end.at, err)
	}
	return t.commit(c, end, systemIdentifier(control))
}

// archived waits until the WAL before lsn is.
func (t *taking) archived(ctx context.Context, lsn xlog.LSN) error {
	if patience := t.opts.Patience; patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w in %v", ErrNotArchived, patience))
		defer cancel()
	}
	if err := t.archive.WaitFor(ctx, t.server.timeline, lsn); err != nil {
		return fmt.Errorf("wait for the WAL up to %v to be archived: %w", lsn, err)
	}
	return nil
}

// end ends the backup on the server. Unlogged relations are looked for before,
// too: one that is dropped right after is not to be seen any more, and its init
// fork is made by the WAL behind the stop's.
func (t *taking) end(ctx context.Context, c *copying) (stopped, error) {
	if err := c.leaveOutUnlogged(ctx); err != nil {
		return stopped{}, err
	}
	end, err := t.server.end(ctx)
	if err != nil {
		return end, err
	}
	if err := c.boundTorn(end.at); err != nil {
		return end, err
	}
	return end, c.leaveOutUnlogged(ctx)
}

// learnChanges finds out what changed since the base, or notes why everything
// must be read.
func (t *taking) learnChanges(ctx context.Context, control []byte) (err error) {
	if t.base != nil && t.base.Backup.SystemIdentifier != systemIdentifier(control) {
		t.base.close()
		t.base = nil
	}
	switch {
	case t.base == nil:
		t.whole = "there is no earlier backup to compare with"
	case t.opts.Whole:
		t.whole = "it was asked for"
	case t.base.Backup.Timeline != t.server.timeline || t.base.Backup.Generation != t.opts.Generation:
		// Two restores from one history make the same timeline twice, and the WAL
		// of neither tells what was changed in the other.
		t.whole = "the earlier backup is of another timeline"
	case t.repo.Damaged():
		t.whole = "earlier backups are damaged"
	default:
		t.base.changes, err = t.changes(ctx, control)
	}
	switch {
	case errors.Is(err, wal.ErrGap) || errors.Is(err, errSwitched):
		t.whole, err = err.Error(), nil
	case errors.Is(err, repository.ErrDamaged):
		t.whole, err = "earlier backups are damaged", nil
	}
	return err
}

// errSwitched says that pages were written of which no WAL tells.
var errSwitched = errors.New("page checksums were switched on or off since the earlier backup")

func (t *taking) changes(ctx context.Context, control []byte) (Changes, error) {
	before, err := t.base.control()
	if err != nil {
		return nil, err
	}
	if !sameForm(before, control) {
		return nil, errSwitched
	}
	from, err := xlog.ParseLSN(t.base.Backup.StartLSN)
	if err != nil {
		return nil, err
	}
	if from > t.server.start {
		return nil, fmt.Errorf("%w: the earlier backup starts at %v, behind this one's start at %v", wal.ErrGap, from, t.server.start)
	}
	changes, err := t.archive.ChangedPages(ctx, t.server.timeline, from, t.server.start)
	if err != nil {
		return nil, fmt.Errorf("learn from the WAL what changed: %w", err)
	}
	return changes, nil
}

func (t *taking) commit(c *copying, end stopped, system uint64) (Result, error) {
	m := &repository.Manifest{Entries: c.done()}
	m.Backup = repository.Backup{
		ID: t.opts.ID, Label: t.opts.Label, Type: t.opts.Type, Generation: t.opts.Generation, StartedAt: t.started, CompletedAt: time.Now().UTC(),
		PostgresVersion: t.server.version, SystemIdentifier: system,
		Timeline: t.server.timeline, StartLSN: t.server.start.String(), StopLSN: end.at.String(),
		WholeRead: t.whole != "", BackupLabel: end.label, TablespaceMap: end.tablespaceMap,
	}
	for i := range m.Entries {
		m.Backup.SizeBytes += m.Entries[i].Size
	}
	digest, stored, err := t.writer.Commit(m)
	if err != nil {
		return Result{}, err
	}
	t.progress.finish()
	return Result{
		ID: t.opts.ID, ManifestBLAKE3: digest, SizeBytes: m.Backup.SizeBytes, StoredBytes: stored, ReadBytes: t.progress.done,
		PostgresVersion: t.server.version, Timeline: t.server.timeline, Start: t.server.start, Stop: end.at, WholeReason: t.whole,
	}, nil
}
