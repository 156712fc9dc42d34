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

// ReceiverOptions say what to receive, and from where.
type ReceiverOptions struct {
	Archive     *Archive
	Incarnation int
	Slot        string // name of the physical replication slot; it is made

	// Dir is pg_wal of the server's data directory. It is read only.
	Dir string
	// SQL opens a session as a superuser.
	SQL func(context.Context) (*pgx.Conn, error)

	// Lost is called when WAL will never come: a Gap has been recorded, and
	// restores across it need a new backup from after it. It may not block.
	Lost func(Gap)

	Logger *slog.Logger // nil = none
}

// Receiver takes an incarnation's WAL out of the server's files as the server
// flushes it, and keeps it durably. Whatever happens to the session or the
// server, it comes back and goes on where the archive ends.
type Receiver struct {
	o      ReceiverOptions
	writer *Writer
	ledger ledger
	stop   context.CancelCauseFunc
	failed chan struct{} // closed when it has failed for good
	wg     sync.WaitGroup
	seen   time.Time // when the server last answered

	mu     sync.Mutex
	closed bool
}

// ErrDiverged is a server whose WAL is not a continuation of the archive's: it
// ends earlier on the same timeline, or is another cluster's. Its WAL belongs
// into another incarnation.
var ErrDiverged = errors.New("the server's WAL does not continue the archive's")

var errClosed = errors.New("the receiver was closed")

// OpenReceiver starts to receive. The incarnation must have been created.
func OpenReceiver(o ReceiverOptions) (*Receiver, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lost == nil {
		o.Lost = func(Gap) {}
	}
	w, err := o.Archive.Writer(o.Incarnation)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	r := &Receiver{o: o, writer: w, stop: stop, failed: make(chan struct{}), seen: time.Now()}
	r.ledger.status = Status{State: StateConnecting, SafeBytes: -1}
	if timeline, end, ok := w.Latest(); ok {
		r.ledger.status.Timeline, r.ledger.status.Durable = timeline, end
	}
	r.wg.Go(func() { r.run(ctx) })
	return r, nil
}

// Close stops receiving and waits for all that runs; what has been received is
// durable then, or will be received again. Closing twice is fine.
func (r *Receiver) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	r.stop(errClosed)
	r.wg.Wait()
	r.ledger.change(func(s *Status) {
		if s.State != StateFailed {
			s.State = StateClosed
		}
	})
	return r.writer.Close()
}

// Status is how things are.
func (r *Receiver) Status() Status {
	s := r.ledger.get()
	if err := r.writer.packer.failure(); err != nil {
		s.Packing = err.Error()
	}
	return s
}

// WaitFor blocks until the archive durably holds what is before lsn on
// timeline, or ctx ends, or the receiver has failed for good. Like
// Archive.WaitFor it knows nothing of gaps.
func (r *Receiver) WaitFor(ctx context.Context, timeline uint32, lsn xlog.LSN) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-r.failed:
			cancel(fmt.Errorf("the WAL receiver has failed: %s", r.Status().LastError))
		case <-done:
		}
	}()
	return r.o.Archive.WaitFor(ctx, r.o.Incarnation, timeline, lsn)
}

// Covers is Archive.Covers of this incarnation.
func (r *Receiver) Covers(timeline uint32, from, to xlog.LSN) error {
	return r.o.Archive.Covers(r.o.Incarnation, timeline, from, to)
}

// ChangedPages is Archive.ChangedPages of this incarnation.
func (r *Receiver) ChangedPages(ctx context.Context, timeline uint32, from, to xlog.LSN) (*xlog.Changes, error) {
	return r.o.Archive.ChangedPages(ctx, r.o.Incarnation, timeline, from, to)
}

const (
	// The waits between attempts.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// restartTime is how long nobody wonders that the server does not answer.
	restartTime = 30 * time.Second
)

// run receives until the receiver is closed or fails for good.
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
			close(r.failed)
			return
		}
		if time.Since(began) > lastRetry {
			wait = firstRetry
		}
		// Spread, so that many receivers do not come back in one moment.
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, lastRetry)
	}
}

// note records how a session has ended.
func (r *Receiver) note(err error, fatal bool) {
	r.ledger.change(func(s *Status) {
		s.State, s.LastFailed = StateConnecting, time.Now()
		s.LastError = err.Error()
		s.Failures++
		if fatal {
			s.State = StateFailed
		}
	})
	if fatal {
		r.o.Logger.Error("WAL receiver has failed for good", "incarnation", r.o.Incarnation, "err", err)
		return
	}
	level := slog.LevelWarn
	if errors.Is(err, errAway) && time.Since(r.seen) < restartTime {
		level = slog.LevelDebug
	}
	r.o.Logger.Log(context.Background(), level, "WAL receiver tries again", "incarnation", r.o.Incarnation, "err", err)
}

// errAway is a server that does not answer.
var errAway = errors.New("the server cannot be asked")

// session connects and receives until something ends it.
func (r *Receiver) session(ctx context.Context) error {
	conn, err := r.o.SQL(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	defer closeConn(conn)
	if err = r.converse(ctx, conn); conn.IsClosed() {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

// converse receives in a session.
func (r *Receiver) converse(ctx context.Context, conn *pgx.Conn) error {
	id, err := identify(ctx, conn)
	if err != nil {
		return err
	}
	if err := r.writer.Identify(id.system, id.segmentSize, id.timeline); err != nil {
		return fmt.Errorf("%w: %w", ErrDiverged, err)
	}
	reserved, err := ensureSlot(ctx, conn, r.o.Slot)
	if err != nil {
		return err
	}
	if err := prepareSight(ctx, conn); err != nil {
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

// receive follows the server, through its timelines.
func (r *Receiver) receive(ctx context.Context, conn *pgx.Conn, id identity, reserved xlog.LSN) error {
	timeline, from, err := r.begin(id, reserved)
	if err != nil {
		return err
	}
	history, err := r.fetchHistory(id.timeline)
	if err != nil {
		return err
	}
	if _, _, received := r.writer.Latest(); !received && len(history) > 0 {
		// What the slot keeps from before the fork is on another timeline.
		from = max(from, history[len(history)-1].At&^xlog.LSN(id.segmentSize-1))
	}
	for {
		end, next, ok := history.Successor(timeline, id.timeline)
		if !ok {
			return fmt.Errorf("%w: it is on timeline %d, to which timeline %d does not lead", ErrDiverged, id.timeline, timeline)
		}
		if _, err := r.fetchHistory(timeline); err != nil {
			return err
		}
		if _, err := r.writer.Start(timeline, from); err != nil {
			return err
		}
		f := follower{
			r: r, conn: conn, end: end, slot: reserved, alarm: newAlarm(r.o.Dir),
			from: source{dir: r.o.Dir, timeline: timeline, size: id.segmentSize},
		}
		if err := f.run(ctx); err != nil {
			return err
		}
		timeline, from = next, end
	}
}

// begin says where to go on: where the archive ends, where the incarnation
// forked, or from where the server has kept WAL.
func (r *Receiver) begin(id identity, reserved xlog.LSN) (timeline uint32, from xlog.LSN, err error) {
	known, _ := r.o.Archive.Incarnation(r.o.Incarnation)
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

// diverged refuses a server that has less WAL than the archive.
func diverged(timeline uint32, from xlog.LSN, id identity) error {
	if id.timeline < timeline || id.timeline == timeline && id.flushed < from {
		return fmt.Errorf("%w: it is at %v on timeline %d, the archive at %v on timeline %d", ErrDiverged, id.flushed, id.timeline, from, timeline)
	}
	return nil
}

// fetchHistory keeps the history file of a timeline.
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
