package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/backup/wal/xlog"
)

// ReceiverOptions are the options of OpenReceiver.
type ReceiverOptions struct {
	Archive    *Archive
	Generation int
	Slot       string // name of the physical replication slot, created if missing

	// Dir is pg_wal in the server's data directory. It is only read.
	Dir string
	// SQL opens a session as a superuser.
	SQL func(context.Context) (*pgx.Conn, error)

	// Lost is called after a Gap was recorded, because WAL will never arrive. Restores to times after the gap need a
	// backup made after it. Lost must not block.
	Lost func(Gap)

	Logger *slog.Logger // nil = none
}

// Receiver archives the WAL of a generation from the server's files as the server flushes it. After any failure of
// the session or the server it reconnects and continues at the end of the archive.
type Receiver struct {
	o       ReceiverOptions
	writer  *Writer
	tracker statusTracker
	stop    context.CancelCauseFunc
	failed  context.Context // cancelled with what ended the receiver for good
	fail    context.CancelCauseFunc
	wg      sync.WaitGroup
	seen    time.Time // when the server last answered

	mu     sync.Mutex
	closed bool
}

// ErrDiverged means that the server's WAL does not continue the archive's: it ends earlier on the same timeline, or
// belongs to another cluster. Its WAL belongs to another generation.
var ErrDiverged = errors.New("the server's WAL does not continue the archive's")

var errClosed = errors.New("the receiver was closed")

// OpenReceiver starts receiving. The generation must exist.
func OpenReceiver(o ReceiverOptions) (*Receiver, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lost == nil {
		o.Lost = func(Gap) {}
	}
	w, err := o.Archive.Writer(o.Generation)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	r := &Receiver{o: o, writer: w, stop: stop, seen: time.Now()}
	r.failed, r.fail = context.WithCancelCause(context.Background())
	r.tracker.status = Status{State: StateConnecting}
	if timeline, end, ok := w.Latest(); ok {
		r.tracker.status.Timeline, r.tracker.status.Durable = timeline, end
	}
	r.wg.Go(func() { r.run(ctx) })
	return r, nil
}

// Close stops receiving and waits for the receiver's goroutines. Received WAL is durable, or will be received again.
// Close is idempotent.
func (r *Receiver) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.stop(errClosed)
	r.wg.Wait()
	r.tracker.change(func(s *Status) {
		if s.State != StateFailed {
			s.State = StateClosed
		}
	})
	return r.writer.Close()
}

// Status returns the receiver's status.
func (r *Receiver) Status() Status {
	s := r.tracker.get()
	if err := r.writer.compressor.failure(); err != nil {
		s.CompressError = err.Error()
	}
	return s
}

// Failure returns what ended the receiver for good, nil as long as it works: an ErrSync, after which another receiver can
// continue, or an ErrDiverged.
func (r *Receiver) Failure() error { return context.Cause(r.failed) }

// WaitFor blocks until the archive durably holds the WAL before lsn on
// timeline, ctx ends, or the receiver fails permanently. Like Archive.WaitFor
// it ignores gaps.
func (r *Receiver) WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.failed, func() {
		cancel(fmt.Errorf("the WAL receiver has failed: %s", r.Status().LastError))
	})()
	return r.o.Archive.WaitFor(ctx, r.o.Generation, timeline, lsn)
}

// Covers is Archive.Covers for this generation.
func (r *Receiver) Covers(timeline uint32, from, to xlog.LSN) error {
	return r.o.Archive.Covers(r.o.Generation, timeline, from, to)
}

// ChangedPages is Archive.ChangedPages for this generation.
func (r *Receiver) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (*xlog.Changes, error) {
	return r.o.Archive.ChangedPages(ctx, r.o.Generation, timeline, from, to)
}

const (
	// firstRetry and lastRetry are the shortest and longest delays between attempts.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// restartTime is how long a server may be unreachable before the receiver logs a warning.
	restartTime = 30 * time.Second
)

// run receives until the receiver is closed or fails permanently.
func (r *Receiver) run(ctx context.Context) {
	wait := firstRetry
	for {
		began := time.Now()
		err := r.session(ctx)
		if ctx.Err() != nil {
			return
		}
		fatal := errors.Is(err, ErrSync) || errors.Is(err, ErrDiverged)
		r.note(err, fatal)
		if fatal {
			r.fail(err)
			return
		}
		if time.Since(began) > lastRetry {
			wait = firstRetry
		}
		// Jitter keeps many receivers from reconnecting at once.
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// note records the error that ended a session.
func (r *Receiver) note(err error, fatal bool) {
	r.tracker.change(func(s *Status) {
		s.State, s.LastFailed = StateConnecting, time.Now()
		s.LastError = err.Error()
		s.Failures++
		if fatal {
			s.State = StateFailed
		}
	})
	if fatal {
		r.o.Logger.Error("WAL receiver has failed", "generation", r.o.Generation, "err", err)
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, errUnreachable) && time.Since(r.seen) < restartTime {
		level = slog.LevelDebug
	}
	r.o.Logger.Log(context.Background(), level, "WAL receiver retries", "generation", r.o.Generation, "err", err)
}

// errUnreachable means that the server does not answer.
var errUnreachable = errors.New("the server cannot be reached")

// session connects to the server and receives until an error.
func (r *Receiver) session(ctx context.Context) error {
	conn, err := r.o.SQL(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer closeConn(conn)
	if err = r.runSession(ctx, conn); conn.IsClosed() {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	return err
}

// runSession receives over one connection.
func (r *Receiver) runSession(ctx context.Context, conn *pgx.Conn) error {
	id, err := identify(ctx, conn)
	if err != nil {
		return err
	}
	if err := r.writer.Identify(id.system, id.segmentSize, id.timeline); err != nil {
		return err
	}
	reserved, err := ensureSlot(ctx, conn, r.o.Slot)
	if err != nil {
		return err
	}
	if err := preparePosition(ctx, conn); err != nil {
		return err
	}
	err = r.receive(ctx, conn, id, reserved)
	if errors.Is(err, errLost) {
		return errors.Join(err, r.skipGap(ctx, conn, id, err))
	}
	return err
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// receive follows the server through its timelines.
func (r *Receiver) receive(ctx context.Context, conn *pgx.Conn, id identity, reserved xlog.LSN) error {
	timeline, from, err := r.startPosition(id, reserved)
	if err != nil {
		return err
	}
	history, err := r.fetchHistory(id.timeline)
	if err != nil {
		return err
	}
	if _, _, received := r.writer.Latest(); !received && len(history) > 0 {
		// The slot may reserve WAL from before the fork, which is on another timeline.
		from = max(from, history[len(history)-1].At&^xlog.LSN(id.segmentSize-1))
	}
	for {
		end, next, ok := history.Successor(timeline, id.timeline)
		if !ok {
			return fmt.Errorf("%w: it is on timeline %d, which does not descend from timeline %d", ErrDiverged, id.timeline, timeline)
		}
		if _, err := r.fetchHistory(timeline); err != nil {
			return err
		}
		if _, err := r.writer.Start(timeline, from); err != nil {
			return err
		}
		f := follower{
			r: r, conn: conn, end: end, slot: reserved, watch: newDirWatch(r.o.Dir),
			from: source{dir: r.o.Dir, timeline: timeline, size: id.segmentSize},
		}
		if err := f.run(ctx); err != nil {
			return err
		}
		timeline, from = next, end
	}
}

// startPosition returns the position to continue at: the end of the archive, the fork of the generation, or the
// start of the WAL that the slot reserves.
func (r *Receiver) startPosition(id identity, reserved xlog.LSN) (timeline uint32, from xlog.LSN, err error) {
	known, _ := r.o.Archive.Generation(r.o.Generation)
	timeline, end, ok := r.writer.Latest()
	if n := len(known.Gaps); n > 0 && known.Gaps[n-1].To > end {
		return known.Gaps[n-1].Timeline, known.Gaps[n-1].To, nil
	}
	if ok {
		return timeline, end, diverged(timeline, end, id)
	}
	from = reserved
	if known.Parent != nil {
		from = known.Parent.Fork
	}
	return id.timeline, xlog.LSN(uint64(from) &^ (id.segmentSize - 1)), nil
}

// diverged returns an error if the server has less WAL than the archive.
func diverged(timeline uint32, from xlog.LSN, id identity) error {
	if id.timeline < timeline || id.timeline == timeline && id.flushed < from {
		return fmt.Errorf("%w: it is at %v on timeline %d, the archive at %v on timeline %d", ErrDiverged, id.flushed, id.timeline, from, timeline)
	}
	return nil
}

// fetchHistory stores the history file of a timeline.
func (r *Receiver) fetchHistory(timeline uint32) (xlog.History, error) {
	if timeline == 1 {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(r.o.Dir, xlog.HistoryName(timeline)))
	if err != nil {
		return nil, fmt.Errorf("read history of timeline %d: %w", timeline, err)
	}
	if err := r.writer.AddHistory(timeline, text); err != nil {
		return nil, err
	}
	return r.writer.branch.histories[timeline], nil
}
