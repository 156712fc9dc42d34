package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ReceiverOptions say what to receive, and from where.
type ReceiverOptions struct {
	Archive     *Archive
	Incarnation int
	Slot        string // name of the physical replication slot; it is made

	// Replication opens a connection for physical replication. Its
	// application_name is what synchronous_standby_names would name to let
	// commits wait for the archive. SQL opens an ordinary one, as a superuser;
	// nil = the slot's state is not watched.
	Replication func(context.Context) (*pgconn.PgConn, error)
	SQL         func(context.Context) (*pgx.Conn, error)

	// Lost is called when WAL will never come: a Gap has been recorded, and
	// restores across it need a new backup from after it. It may not block.
	Lost func(Gap)

	Logger *slog.Logger // nil = none
}

// Receiver receives an incarnation's WAL as it is made and keeps it durably.
// Whatever happens to the connection or the server, it comes back and goes on
// where the archive ends.
type Receiver struct {
	o      ReceiverOptions
	writer *Writer
	ledger ledger
	stop   context.CancelCauseFunc
	failed chan struct{} // closed when it has failed for good
	look   chan struct{} // the slot may have changed
	wg     sync.WaitGroup
	down   time.Time // when the server was last shut down in order

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
	r := &Receiver{o: o, writer: w, stop: stop, failed: make(chan struct{}), look: make(chan struct{}, 1)}
	r.ledger.status = Status{State: StateConnecting, SafeBytes: -1}
	if timeline, end, ok := w.Latest(); ok {
		r.ledger.status.Timeline, r.ledger.status.Durable = timeline, end
	}
	r.wg.Go(func() { r.run(ctx) })
	if o.SQL != nil {
		r.wg.Go(func() { r.watchSlot(ctx) })
	}
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
func (r *Receiver) WaitFor(ctx context.Context, timeline uint32, lsn LSN) error {
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
func (r *Receiver) Covers(timeline uint32, from, to LSN) error {
	return r.o.Archive.Covers(r.o.Incarnation, timeline, from, to)
}

// ChangedPages is Archive.ChangedPages of this incarnation.
func (r *Receiver) ChangedPages(ctx context.Context, timeline uint32, from, to LSN) (*Changes, error) {
	return r.o.Archive.ChangedPages(ctx, r.o.Incarnation, timeline, from, to)
}

const (
	// The waits between attempts.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// restartTime is how long after an orderly shutdown nobody wonders that the
	// server does not answer.
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
	if errors.Is(err, errShutdown) {
		r.down = time.Now()
		r.ledger.change(func(s *Status) { s.State = StateConnecting })
		r.o.Logger.Info("WAL receiver waits for the server, which is shutting down", "incarnation", r.o.Incarnation)
		return
	}
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
	if time.Since(r.down) < restartTime {
		level = slog.LevelDebug
	}
	r.o.Logger.Log(context.Background(), level, "WAL receiver lost its connection, and tries again", "incarnation", r.o.Incarnation, "err", err)
}

// errLost is WAL that the server does not have any more.
var errLost = errors.New("the server has removed WAL that the archive does not have")

// session connects and receives until something ends it.
func (r *Receiver) session(ctx context.Context) error {
	conn, err := r.o.Replication(ctx)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	// Everything on this connection ends when the receiver is closed.
	defer context.AfterFunc(ctx, func() { conn.Conn().SetDeadline(time.Unix(1, 0)) })()
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
	timeline, from, err := r.begin(id, reserved)
	if err != nil {
		return err
	}
	if _, _, received := r.writer.Latest(); !received && timeline > 1 {
		// What the slot keeps from before the fork is on another timeline.
		fork, err := r.forkFrom(ctx, conn, timeline)
		if err != nil {
			return err
		}
		from = max(from, LSN(uint64(fork)&^(id.segmentSize-1)))
	}
	for {
		next, err := r.timeline(ctx, conn, timeline, from)
		if errors.Is(err, errLost) {
			closeConn(conn)
			return errors.Join(err, r.skipGap(ctx, id, err))
		}
		if err != nil {
			return err
		}
		if from, err = r.forkFrom(ctx, conn, next); err != nil {
			return err
		}
		timeline = next
	}
}

func closeConn(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// begin says where to go on: where the archive ends, where the incarnation
// forked, or from where the server has kept WAL.
func (r *Receiver) begin(id identity, reserved LSN) (timeline uint32, from LSN, err error) {
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
	return id.timeline, LSN(uint64(from) &^ (id.segmentSize - 1)), nil
}

// diverged refuses a server that has less WAL than the archive.
func diverged(timeline uint32, from LSN, id identity) error {
	if id.timeline < timeline || id.timeline == timeline && id.flushed < from {
		return fmt.Errorf("%w: it is at %v on timeline %d, the archive at %v on timeline %d", ErrDiverged, id.flushed, id.timeline, from, timeline)
	}
	return nil
}

// timeline receives a timeline to its end, and returns the next.
func (r *Receiver) timeline(ctx context.Context, conn *pgconn.PgConn, timeline uint32, from LSN) (next uint32, err error) {
	if err := r.fetchHistory(ctx, conn, timeline); err != nil {
		return 0, err
	}
	at, err := r.writer.Start(timeline, from)
	if err != nil {
		return 0, err
	}
	streaming, next, err := startReplication(conn, r.o.Slot, timeline, at)
	if err != nil {
		return 0, r.whyNot(err)
	}
	if !streaming {
		return next, nil
	}
	r.ledger.change(func(s *Status) { s.State = StateStreaming })
	select {
	case r.look <- struct{}{}:
	default:
	}
	stream := newStream(conn, r.writer, &r.ledger, timeline, at)
	next, err = stream.receive(ctx)
	return next, r.whyNot(err)
}

// whyNot tells WAL that is gone from what may pass.
func (r *Receiver) whyNot(err error) error {
	pgError := new(pgconn.PgError)
	if errors.As(err, &pgError) && (pgError.Code == undefinedFile || pgError.Code == notInPrerequisiteState) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// fetchHistory keeps the history file of a timeline.
func (r *Receiver) fetchHistory(ctx context.Context, conn *pgconn.PgConn, timeline uint32) error {
	if timeline == 1 {
		return nil
	}
	row, err := ask(ctx, conn, fmt.Sprintf("TIMELINE_HISTORY %d", timeline))
	if err != nil || len(row) < 2 {
		return fmt.Errorf("fetch history of timeline %d: %w", timeline, errors.Join(err, shortAnswer(row, 2)))
	}
	return r.writer.AddHistory(timeline, []byte(row[1]))
}

// forkFrom is where a timeline that follows begins.
func (r *Receiver) forkFrom(ctx context.Context, conn *pgconn.PgConn, timeline uint32) (LSN, error) {
	if err := r.fetchHistory(ctx, conn, timeline); err != nil {
		return 0, err
	}
	h := r.writer.branch.histories[timeline]
	if len(h) == 0 {
		return 0, fmt.Errorf("the history of timeline %d is empty", timeline)
	}
	return h[len(h)-1].At, nil
}
