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
	"holdfast/internal/durable"
)

// Recovery recovers a data directory to a position, with PostgreSQL and WAL from the archive.
type Recovery struct {
	Archive *Archive
	// Start and Consistent are the start and stop of the backup: replay begins at Start, and the data directory is
	// consistent at Consistent.
	Start, Consistent xlog.LSN
	// Target is the last record to replay (Resolution.Reach).
	Target Point
	Dir    string // the data directory

	// Connect opens a session as superuser, which succeeds once the server is consistent. Exited is closed when the
	// server process has ended.
	Connect func(context.Context) (*pgx.Conn, error)
	Exited  <-chan struct{}
	// Progress, if not nil, is called with the replay position.
	Progress func(replayed xlog.LSN)
}

// feedAhead is the number of segments installed ahead of the one being replayed.
const feedAhead = 8

const (
	// feedEvery is the interval of polls of the replay position. Replay of a 16 MiB segment takes about a tenth of a
	// second.
	feedEvery = 10 * time.Millisecond
	// unresponsiveEvery is the interval at which a server that does not answer gets feedAhead more segments.
	unresponsiveEvery = time.Second
)

// Settings returns the server settings for this recovery, to be used with standby.signal. A standby that lacks WAL
// waits for it; other kinds of recovery would treat that as the end of WAL and promote. The server pauses at the
// target, and only there. If a transaction with many subtransactions is open at the target, the server accepts no
// connections until it is a primary, so nothing could end the pause, and it promotes itself. wal_keep_size keeps the
// WAL of its new timeline until a slot does.
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
		"wal_recycle":                 "off", // a recycled segment would have the name of one to be installed
		"wal_keep_size":               "64MB",
	}
}

// Prepare prepares pg_wal of a data directory on which no server was started. It removes existing files, since
// segments may be recycled or belong to another history with the same names, and installs the first segments.
func (r Recovery) Prepare(ctx context.Context) error {
	if err := r.Archive.Covers(r.Target.Generation, r.Target.Timeline, r.Start, r.Target.End); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	if err := f.clear(); err != nil {
		return err
	}
	if err := f.installHistory(); err != nil {
		return err
	}
	return f.installUpTo(ctx, f.next+feedAhead)
}

// Fill is Prepare, and also installs all segments up to the target, for a server that is not fed.
func (r Recovery) Fill(ctx context.Context) error {
	if err := r.Prepare(ctx); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	return f.installUpTo(ctx, f.last)
}

// Run feeds the server that runs on the prepared directory until it pauses at the target or promotes itself there,
// and checks its position. Run can be called again after it was cancelled or its process was killed. If WAL is
// missing or damaged it returns a *GapError, and the server keeps waiting.
func (r Recovery) Run(ctx context.Context) error {
	if err := r.Archive.Covers(r.Target.Generation, r.Target.Timeline, r.Start, r.Target.End); err != nil {
		return err
	}
	f, err := r.feeder()
	if err != nil {
		return err
	}
	if err := f.resume(); err != nil {
		return err
	}
	// A server that is not consistent yet does not report its position.
	if err := f.installUpTo(ctx, max(f.next+feedAhead, uint64(max(r.Consistent, 1)-1)/f.size)); err != nil {
		return err
	}
	var conn *pgx.Conn
	defer func() {
		if conn != nil {
			conn.Close(context.WithoutCancel(ctx))
		}
	}()
	lastAnswer := time.Now()
	for {
		if conn == nil || conn.IsClosed() {
			conn, _ = r.Connect(ctx) // nil while the server accepts no connections
		}
		if conn != nil {
			switch done, err := r.step(ctx, conn, f); {
			case errors.Is(err, errNoAnswer): // retry until the server has ended
			case done || err != nil:
				return err
			default:
				lastAnswer = time.Now()
			}
		}
		if time.Since(lastAnswer) > unresponsiveEvery {
			lastAnswer = time.Now()
			if err := f.installMore(ctx); err != nil {
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

// errNoAnswer means that the connection is broken.
var errNoAnswer = errors.New("the server does not answer")

// waitsForWAL is the startup process's wait_event while it waits for a segment.
const waitsForWAL = "RecoveryRetrieveRetryInterval"

// step polls the replay position and installs the next segments. Within a record longer than the installed segments,
// the position does not advance, and the server waits for WAL.
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
	if wait == waitsForWAL {
		return false, f.installMore(ctx)
	}
	return false, f.installUpTo(ctx, uint64(replayed)/f.size+feedAhead)
}

// verifyPromoted checks the start of the timeline of a server that promoted itself. file is the segment it writes
// to.
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

// verify checks the position of a paused server. A server also pauses earlier if the WAL shows that its settings are
// smaller than the primary's.
func (r Recovery) verify(replayed xlog.LSN) error {
	if replayed != r.Target.End {
		return fmt.Errorf("recover: the server has paused at %v, not at the target's end %v; its log says why", replayed, r.Target.End)
	}
	return nil
}

// feeder installs segments in pg_wal, in order.
type feeder struct {
	r     Recovery
	spans []span
	size  uint64
	next  uint64 // the next segment to install
	last  uint64 // the segment in which the target ends
}

func (r Recovery) feeder() (*feeder, error) {
	spans, err := r.Archive.spans(r.Target.Generation, r.Target.Timeline)
	if err != nil {
		return nil, err
	}
	size := segmentSizeOf(spans)
	return &feeder{r: r, spans: spans, size: size, next: uint64(r.Start) / size, last: uint64(r.Target.End-1) / size}, nil
}

func (f *feeder) dir() string { return filepath.Join(f.r.Dir, "pg_wal") }

// clear removes all files from pg_wal; its directories stay.
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

// installHistory installs the history file of the target's timeline. Timeline 1 has none.
func (f *feeder) installHistory() error {
	if f.r.Target.Timeline == 1 {
		return nil
	}
	last := f.spans[len(f.spans)-1]
	name := xlog.HistoryName(f.r.Target.Timeline)
	text, err := os.ReadFile(filepath.Join(last.branch.dir, name))
	if err != nil {
		return fmt.Errorf("prepare recovery: %w", err)
	}
	return durable.WriteFile(filepath.Join(f.dir(), name), text, 0o600)
}

// resume determines the segment to continue with: a restarted server begins at its last restart point, and has
// removed only older segments. Existing segments are installed again, because a power cut may have destroyed their
// content.
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

// installMore installs a few more segments.
func (f *feeder) installMore(ctx context.Context) error {
	return f.installUpTo(ctx, f.next+feedAhead-1)
}

// installUpTo installs the segments up to number n, but not beyond the last.
func (f *feeder) installUpTo(ctx context.Context, n uint64) error {
	for n = min(n, f.last); f.next <= n; f.next++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("install WAL: %w", context.Cause(ctx))
		}
		if err := f.install(f.next); err != nil {
			return err
		}
	}
	return nil
}

// install installs a complete segment by rename. The last segment contains nothing after the target, so WAL after
// the target can never be replayed.
func (f *feeder) install(n uint64) error {
	start := xlog.LSN(n * f.size)
	end := min(start+xlog.LSN(f.size), f.r.Target.End)
	b, s := f.r.Archive.pick(f.spans, n, end)
	if s == nil {
		return gapError(f.spans, n, errMissing)
	}
	temp := filepath.Join(f.dir(), "holdfast"+durable.NewSuffix)
	to, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("install WAL: %w", err)
	}
	err = f.r.Archive.streamSegment(b, s, start, end, func(at xlog.LSN, piece []byte) error {
		_, err := to.WriteAt(piece, int64(at-start))
		return err
	})
	err = errors.Join(err, to.Truncate(int64(f.size)), to.Close())
	if errors.Is(err, errDamaged) {
		err = &GapError{Generation: b.number, Segment: b.name(s.segmentKey), Err: err}
	}
	if err == nil {
		err = os.Rename(temp, filepath.Join(f.dir(), b.name(s.segmentKey)))
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("install WAL: %w", err)
	}
	return nil
}
