package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// Recovery is a data directory that PostgreSQL brings to a position, with WAL
// from the archive.
type Recovery struct {
	Archive *Archive
	// Start is where replay begins and Consistent where the backup has been
	// made consistent: start and stop of the backup.
	Start, Consistent xlog.LSN
	// Target is the last record to replay (Resolution.Reach).
	Target Point
	Dir    string // the data directory

	// Connect opens a session as superuser, which works once the server is
	// consistent. Exited is closed when its process has ended.
	Connect func(context.Context) (*pgx.Conn, error)
	Exited  <-chan struct{}
	// Progress, which may be nil, is told how far replay is.
	Progress func(replayed xlog.LSN)
}

// feedAhead is how many segments lie ahead of the one being replayed.
const feedAhead = 8

// feedEvery is how often the server is asked how far it is. Replay of a
// segment of 16 MiB takes about a tenth of a second. To one that does not answer
// feedAhead more are laid each feedBlind.
const (
	feedEvery = 10 * time.Millisecond
	feedBlind = time.Second
)

// Settings are the server's for this recovery, beside the file standby.signal.
// A standby that lacks WAL waits for it, where other kinds of recovery would
// take it for the end and go on as a new primary. At the target, and nowhere
// else, it pauses; where a transaction with many subtransactions is open it lets
// nobody in before it is a primary, and there is nobody to end a pause, so that
// it goes on by itself. The WAL of its new timeline stays until a slot keeps it.
func (r Recovery) Settings() map[string]string {
	return map[string]string{
		"recovery_target_lsn":         r.Target.Start.String(),
		"recovery_target_inclusive":   "on",
		"recovery_target_timeline":    strconv.FormatUint(uint64(r.Target.Timeline), 10),
		"recovery_target_action":      "pause",
		"recovery_min_apply_delay":    "0",
		"restore_command":             "",
		"archive_cleanup_command":     "",
		"recovery_end_command":        "",
		"primary_conninfo":            "",
		"primary_slot_name":           "",
		"hot_standby":                 "on",
		"wal_retrieve_retry_interval": "10ms",
		"wal_recycle":                 "off", // a recycled segment lies where one of ours is to come
		"wal_keep_size":               "64MB",
	}
}

// Prepare makes pg_wal of a data directory that no server has been started on
// ready: it removes what is there, for segments may be recycled ones, or
// another history's under the same names, and lays the first.
func (r Recovery) Prepare(ctx context.Context) error {
	if err := r.Archive.Covers(r.Target.Incarnation, r.Target.Timeline, r.Start, r.Target.End); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	if err := f.layHistory(); err != nil {
		return err
	}
	return f.layUpTo(ctx, f.next+feedAhead)
}

// Fill is Prepare that lays everything up to the target, for a server that
// nobody feeds.
func (r Recovery) Fill(ctx context.Context) error {
	if err := r.Prepare(ctx); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	return f.layUpTo(ctx, f.last)
}

// Run feeds the server, which is running on the prepared directory, until it
// pauses at the target or has promoted itself there, and checks that it is
// there. It can be run again after
// it was cancelled, or its process killed. When WAL is missing or damaged it
// returns a *GapError, and the server waits as it is.
func (r Recovery) Run(ctx context.Context) error {
	if err := r.Archive.Covers(r.Target.Incarnation, r.Target.Timeline, r.Start, r.Target.End); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	if err := f.resume(); err != nil {
		return err
	}
	// Before it is consistent the server does not say how far it is.
	if err := f.layUpTo(ctx, max(f.next+feedAhead, uint64(max(r.Consistent, 1)-1)/f.size)); err != nil {
		return err
	}
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			conn.Close(context.WithoutCancel(ctx))
		}
	}()
	heard := time.Now()
	for {
		if conn == nil || conn.IsClosed() {
			conn, _ = r.Connect(ctx) // it does not answer yet
		}
		if conn != nil {
			switch done, err := r.step(ctx, conn, f); {
			case errors.Is(err, errNoAnswer): // it is tried again, until the server has ended
			case done || err != nil:
				return err
			default:
				heard = time.Now()
			}
		}
		if time.Since(heard) > feedBlind {
			heard = time.Now()
			if err := f.layMore(ctx); err != nil {
				return err
			}
		}
		select {
		case <-time.After(feedEvery):
		case <-r.Exited:
			return errors.New("recover: the server ended before it reached the target; its log says why")
		case <-ctx.Done():
			return fmt.Errorf("recover to %v: %w", r.Target.Start, context.Cause(ctx))
		}
	}
}

// errNoAnswer is a connection that is gone.
var errNoAnswer = errors.New("the server does not answer")

// lacksWAL is the startup process's wait_event while it waits for a segment that
// is not there.
const lacksWAL = "RecoveryRetrieveRetryInterval"

// step asks how far the server is, and lays what it needs next. Within a record
// that is longer than what lies ahead it does not come further, and lacks more.
func (r Recovery) step(ctx context.Context, conn *pgx.Conn, f *feeder) (done bool, err error) {
	var recovering bool
	var text, pause, wait, file string
	err = conn.QueryRow(ctx, "select r, coalesce(pg_catalog.pg_last_wal_replay_lsn()::text, '0/0'),"+
		" case when r then pg_catalog.pg_get_wal_replay_pause_state() else '' end,"+
		" coalesce((select wait_event from pg_catalog.pg_stat_activity where backend_type = 'startup'), ''),"+
		" case when r then '' else pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_flush_lsn()) end"+
		" from pg_catalog.pg_is_in_recovery() r").Scan(&recovering, &text, &pause, &wait, &file)
	if err != nil {
		return false, errNoAnswer
	}
	replayed, err := xlog.ParseLSN(text)
	if err != nil {
		return false, err
	}
	if !recovering {
		return true, r.verifyPromoted(file, f.size)
	}
	if r.Progress != nil {
		r.Progress(replayed)
	}
	if pause == "paused" {
		return true, r.verify(replayed)
	}
	if wait == lacksWAL {
		return false, f.layMore(ctx)
	}
	return false, f.layUpTo(ctx, uint64(replayed)/f.size+feedAhead)
}

// verifyPromoted checks where the timeline of a server that has promoted itself
// begins. file is the segment it writes to.
func (r Recovery) verifyPromoted(file string, size uint64) error {
	timeline, _, ok := xlog.ParseSegmentName(file, size)
	if !ok {
		return fmt.Errorf("recover: the server writes to a WAL file named %q", file)
	}
	text, err := os.ReadFile(filepath.Join(r.Dir, "pg_wal", xlog.HistoryName(timeline)))
	if err != nil {
		return fmt.Errorf("recover: the server has promoted itself: %w", err)
	}
	history, err := xlog.ParseHistory(timeline, text)
	if err != nil {
		return fmt.Errorf("recover: the server has promoted itself: %w", err)
	}
	if len(history) == 0 {
		return fmt.Errorf("recover: the server has promoted itself, and the history of timeline %d is empty", timeline)
	}
	if last := history[len(history)-1]; last.Timeline != r.Target.Timeline || last.At != r.Target.End {
		return fmt.Errorf("recover: the server has promoted itself at %v on timeline %d, not at the target's end %v on timeline %d; its log says why",
			last.At, last.Timeline, r.Target.End, r.Target.Timeline)
	}
	return nil
}

// verify checks where a server has paused. It also pauses by itself, earlier,
// when its settings are too small for what the WAL says of the primary's.
func (r Recovery) verify(replayed xlog.LSN) error {
	if replayed != r.Target.End {
		return fmt.Errorf("recover: the server has paused at %v, not at the target's end %v; its log says why", replayed, r.Target.End)
	}
	return nil
}

// feeder lays segments into pg_wal, in order.
type feeder struct {
	r     Recovery
	spans []span
	size  uint64
	next  uint64 // the next segment to lay
	last  uint64 // the one the target ends in
}

func (r Recovery) feeder() (*feeder, error) {
	spans, err := r.Archive.spans(r.Target.Incarnation, r.Target.Timeline)
	if err != nil {
		return nil, err
	}
	size := segmentSizeOf(spans)
	return &feeder{r: r, spans: spans, size: size, next: uint64(r.Start) / size, last: uint64(r.Target.End-1) / size}, nil
}

func (f *feeder) dir() string { return filepath.Join(f.r.Dir, "pg_wal") }

// clear empties pg_wal of segments, histories and what a feeder left; its
// directories stay.
func (f *feeder) clear() error {
	entries, err := os.ReadDir(f.dir())
	if err != nil {
		return fmt.Errorf("prepare recovery: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			if err := os.Remove(filepath.Join(f.dir(), e.Name())); err != nil {
				return fmt.Errorf("prepare recovery: %w", err)
			}
		}
	}
	return nil
}

// layHistory lays the history file by which PostgreSQL finds its way to the
// target's timeline; the first has none.
func (f *feeder) layHistory() error {
	if f.r.Target.Timeline == 1 {
		return nil
	}
	last := f.spans[len(f.spans)-1]
	name := xlog.HistoryName(f.r.Target.Timeline)
	text, err := os.ReadFile(filepath.Join(last.branch.dir, name))
	if err != nil {
		return fmt.Errorf("prepare recovery: %w", err)
	}
	return publishBytes(disk{}, filepath.Join(f.dir(), name), text)
}

// resume finds where to go on: a server that is started again begins at its
// last restart point, and removes only what is older. What is there is laid
// again: a power cut may have taken its content.
func (f *feeder) resume() error {
	entries, err := os.ReadDir(f.dir())
	if err != nil {
		return fmt.Errorf("resume recovery: %w", err)
	}
	lowest := f.last
	for _, e := range entries {
		if _, n, ok := xlog.ParseSegmentName(e.Name(), f.size); ok {
			lowest = min(lowest, n)
		}
	}
	f.next = max(f.next, lowest)
	return nil
}

// layMore lays a few segments more.
func (f *feeder) layMore(ctx context.Context) error { return f.layUpTo(ctx, f.next+feedAhead-1) }

// layUpTo lays the segments up to the n-th, but none behind the target's.
func (f *feeder) layUpTo(ctx context.Context, n uint64) error {
	for n = min(n, f.last); f.next <= n; f.next++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("lay WAL: %w", context.Cause(ctx))
		}
		if err := f.lay(f.next); err != nil {
			return err
		}
	}
	return nil
}

// lay puts a segment into pg_wal, whole, by a rename. Of the last, nothing is
// there behind the target: whatever goes wrong, it cannot be replayed.
func (f *feeder) lay(n uint64) error {
	start := xlog.LSN(n * f.size)
	end := min(start+xlog.LSN(f.size), f.r.Target.End)
	b, s := f.r.Archive.pick(f.spans, n, end)
	if s == nil {
		return gapError(f.spans, n, errMissing)
	}
	temp := filepath.Join(f.dir(), "holdfast"+newSuffix)
	to, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("lay WAL: %w", err)
	}
	err = f.r.Archive.streamSegment(b, s, start, end, func(at xlog.LSN, piece []byte) error {
		_, err := to.WriteAt(piece, int64(at-start))
		return err
	})
	err = errors.Join(err, to.Truncate(int64(f.size)), to.Close())
	if errors.Is(err, errDamaged) {
		err = &GapError{Incarnation: b.number, Segment: b.name(s.segmentKey), Err: err}
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(f.dir(), b.name(s.segmentKey)))
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("lay WAL: %w", err)
	}
	return nil
}
