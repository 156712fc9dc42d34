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
	"holdfast/internal/pgcontrol"
)

// Options are the options of Take.
type Options struct {
	// ID names the backup in the repository; it must be valid as a file name.
	ID string
	// Label is the label for pg_backup_start, at most 1000 bytes.
	Label string
	// Type is stored in the manifest, for a caller that lost its own record.
	Type string
	// Generation is the data directory's generation in the WAL archive. The backup stores it for the next backup,
	// and for a restore without other records.
	Generation int
	// Base is an earlier backup of the same cluster in the repository, ideally the latest: unchanged data is not
	// stored again, and if WAL shows what changed since, nothing else is read. "" or an absent backup means none.
	Base string
	// Whole reads and compares everything, whatever changes WAL shows. Set it regularly to find changes without WAL,
	// such as bit rot.
	Whole bool
	// Patience limits the wait for the WAL up to the backup's start, and up to its
	// stop, to be archived; 0 means no limit.
	Patience time.Duration

	// Progress, if set, is called for every MiB and at the end with the bytes read and the expected total. Calls are
	// serialized, and the backup waits for them.
	Progress func(doneBytes, totalBytes int64)
}

// ErrNotArchived means that the WAL was not archived within [Options].Patience.
var ErrNotArchived = errors.New("it was not archived")

// Result describes a complete backup.
type Result struct {
	ID              string
	ManifestBLAKE3  string // hex
	SizeBytes       int64  // of the files
	StoredBytes     int64  // bytes that this backup added to the repository
	ReadBytes       int64  // of the data directory
	PostgresVersion string // the server's, "15.18"
	Timeline        uint32
	Start, Stop     xlog.LSN
	// WholeReason is the reason for reading everything, or "" if only changes were read.
	WholeReason string
}

// Take backs up the server of conn into repo. The server keeps working; it must
// be on this machine, and this process must be able to read its data directory.
//
// conn is a session of a superuser of PostgreSQL 15 or newer. Only Take uses it, and the caller closes it. After an
// error it is already closed, which also ends the backup on the server; a retry needs a new one. Every error may be
// retried: a Take that fails or whose ctx ends leaves no backup.
//
// A page with a wrong checksum is an error that names the page. Take refuses a cluster with tablespaces.
func Take(ctx context.Context, conn *pgx.Conn, repo *repository.Repository, archive WAL, opts Options) (Result, error) {
	t := &taking{server: &server{conn: conn}, repo: repo, archive: archive, opts: opts, progress: &progress{tell: opts.Progress}}
	result, err := t.run(ctx)
	if err != nil {
		t.server.abandon()
		return Result{}, fmt.Errorf("take base backup: %w", err)
	}
	return result, nil
}

// taking is a running Take.
type taking struct {
	server   *server
	repo     *repository.Repository
	archive  WAL
	opts     Options
	progress *progress

	writer  *repository.Writer
	root    *os.Root
	base    *base
	whole   string // the reason for reading everything
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

// copy reads the files, ends the backup on the server and commits it to the repository.
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
	return t.commit(c, end, pgcontrol.SystemIdentifier(control))
}

// archived waits until the WAL before lsn is archived.
func (t *taking) archived(ctx context.Context, lsn xlog.LSN) error {
	if patience := t.opts.Patience; patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %v", ErrNotArchived, patience))
		defer cancel()
	}
	if err := t.archive.WaitFor(ctx, t.server.timeline, lsn); err != nil {
		return fmt.Errorf("wait for the WAL up to %v to be archived: %w", lsn, err)
	}
	return nil
}

// end ends the backup on the server. It also excludes unlogged relations before that: if one is dropped right after
// the stop, the second listing cannot see it, and WAL after the stop creates its init fork.
func (t *taking) end(ctx context.Context, c *copying) (stopped, error) {
	if err := c.excludeUnlogged(ctx); err != nil {
		return stopped{}, err
	}
	end, err := t.server.end(ctx)
	if err != nil {
		return end, err
	}
	if err := c.checkTorn(end.at); err != nil {
		return end, err
	}
	return end, c.excludeUnlogged(ctx)
}

// learnChanges determines the changes since the base, or why everything must be read.
func (t *taking) learnChanges(ctx context.Context, control []byte) (err error) {
	if t.base != nil && t.base.Backup.SystemIdentifier != pgcontrol.SystemIdentifier(control) {
		t.base.close()
		t.base = nil
	}
	switch {
	case t.base == nil:
		t.whole = "there is no earlier backup to compare with"
	case t.opts.Whole:
		t.whole = "it was asked for"
	case t.base.Backup.Timeline != t.server.timeline || t.base.Backup.Generation != t.opts.Generation:
		// Two restores from one history use the same timeline number, and the WAL of one does not show the changes
		// in the other.
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

// errSwitched means that pages were written without WAL.
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
		return nil, fmt.Errorf("%w: the earlier backup starts at %v, after this one's start at %v", wal.ErrGap, from, t.server.start)
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
