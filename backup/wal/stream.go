package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// maxWaiting bounds the WAL that waits while a sync is under way.
	maxWaiting = 4 << 20
	// idleBuffer is how much of that is kept in memory while nothing comes; there
	// is a stream for every database.
	idleBuffer = 256 << 10
	// gather is how long WAL comes together before it is written. pause is how
	// often the connection is read then, while no more than calm comes in it:
	// to wake up for each of thousands of commits a second takes the processors
	// from the server that makes them.
	gather = time.Millisecond
	pause  = 10 * time.Millisecond
	calm   = 128 << 10
	// pingEvery is how often the server is asked, when it says nothing, whether
	// there is nothing.
	pingEvery = time.Second
	// silence is how long a server may say nothing in spite of that.
	silence = 60 * time.Second
)

// stream receives one timeline. One goroutine drains the connection while the
// other checks, writes, syncs and confirms: what has come meanwhile is served
// next. Both take their time, unless the server waits for them.
type stream struct {
	conn     *pgconn.PgConn
	writer   *Writer
	ledger   *ledger
	timeline uint32
	wake     chan struct{} // something has come
	done     chan struct{} // the writing side has ended

	mu      sync.Mutex
	room    *sync.Cond // something has been taken
	in      arrived
	stopped bool // the writing side takes no more

	confirmed LSN     // the end of the last whole record that is durable
	synced    LSN     // all bytes before it are durable
	quiet     message // the first keepalive of those that said the same
}

// arrived is what the server has sent and nobody has taken.
type arrived struct {
	start LSN
	data  []byte
	end   LSN       // of the server's WAL
	heard time.Time // when it spoke, by our clock
	alive []message // keepalives
	reply bool      // it wants a status
	err   error     // nothing more comes; errTimelineEnd
}

var (
	errTimelineEnd = errors.New("the timeline has ended")
	// errShutdown ends a stream in order: all WAL has been sent and confirmed.
	errShutdown = errors.New("the server is shutting down")
)

func newStream(conn *pgconn.PgConn, w *Writer, l *ledger, timeline uint32, at LSN) *stream {
	s := &stream{conn: conn, writer: w, ledger: l, timeline: timeline, confirmed: at, synced: at, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.in.heard = time.Now()
	s.room = sync.NewCond(&s.mu)
	return s
}

// receive returns the next timeline when this one ends.
func (s *stream) receive(ctx context.Context) (next uint32, err error) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		s.drain()
	}()
	err = s.keep(ctx)
	close(s.done)
	s.mu.Lock()
	s.stopped = true
	s.room.Broadcast()
	s.mu.Unlock()
	if errors.Is(err, errTimelineEnd) {
		<-drained
		return s.next()
	}
	_ = s.conn.Conn().SetDeadline(time.Unix(1, 0)) // ends the draining
	<-drained
	return 0, err
}

// drain reads the connection until it ends.
func (s *stream) drain() {
	var began time.Time // when what comes together began to come
	var came int        // bytes of it
	for {
		msg, err := s.conn.ReceiveMessage(context.Background())
		if err == nil {
			err = s.arrive(msg)
		}
		if err != nil {
			s.mu.Lock()
			s.in.err = err
			s.mu.Unlock()
			s.notify()
			return
		}
		now := time.Now()
		if now.Sub(began) > pause {
			began, came = now, 0
		}
		if data, ok := msg.(*pgproto3.CopyData); ok {
			came += len(data.Data)
		}
		// What comes in the first half of the time is sure to be in the same sync.
		if now.Sub(began) > gather/2 {
			if came < calm {
				s.wait(began.Add(pause).Sub(now))
			}
			began = time.Time{}
		}
	}
}

// wait waits for d, but not while commits wait for the archive, nor when the
// writing side has ended.
func (s *stream) wait(d time.Duration) {
	if s.ledger.synchronous() {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

func (s *stream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) arrive(msg pgproto3.BackendMessage) error {
	switch msg := msg.(type) {
	case *pgproto3.CopyData:
		m, err := parseMessage(msg.Data)
		if err != nil {
			return err
		}
		return s.put(m)
	case *pgproto3.CopyDone:
		return errTimelineEnd
	case *pgproto3.ErrorResponse:
		return pgconn.ErrorResponseToPgError(msg)
	case *pgproto3.CommandComplete:
		return errShutdown
	case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		return nil
	default:
		return fmt.Errorf("the server sent %T in a stream of WAL", msg)
	}
}

func (s *stream) put(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.in.data) > 0 && len(s.in.data)+len(m.data) > maxWaiting && !s.stopped {
		s.room.Wait()
	}
	a := &s.in
	a.heard, a.end, a.reply = time.Now(), m.end, a.reply || m.reply
	if len(m.data) == 0 {
		a.alive = append(a.alive, m)
	} else {
		if len(a.data) == 0 {
			a.start = m.start
		} else if m.start != a.start+LSN(len(a.data)) {
			return fmt.Errorf("the server sent WAL at %v, not at %v", m.start, a.start+LSN(len(a.data)))
		}
		a.data = append(a.data, m.data...)
	}
	s.notify()
	return nil
}

// keep writes what arrives, until nothing does any more.
func (s *stream) keep(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var buf []byte
	for {
		asked := false
		select {
		case <-s.wake:
			s.wait(gather)
		case <-ping.C:
			asked = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		a := s.takeAll(buf)
		if err := s.serve(a, asked); err != nil {
			return err
		}
		if buf = a.data[:0]; len(a.data) == 0 && cap(buf) > idleBuffer {
			buf = nil
		}
	}
}

// takeAll takes what has arrived, and leaves buf for what comes.
func (s *stream) takeAll(buf []byte) arrived {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.in
	s.in = arrived{data: buf, end: a.end, heard: a.heard, err: a.err}
	s.room.Broadcast()
	return a
}

func (s *stream) serve(a arrived, asked bool) error {
	if len(a.data) > 0 {
		if err := s.writer.Append(a.start, a.data); err != nil {
			return err
		}
		durable, commits, err := s.writer.Sync()
		if err != nil {
			return err
		}
		s.confirmed, s.synced = max(durable, s.confirmed), a.start+LSN(len(a.data))
		s.ledger.durable(s.timeline, s.confirmed, commits, time.Now())
	}
	s.judge(a)
	if a.err != nil {
		return a.err
	}
	if time.Since(a.heard) > silence {
		return fmt.Errorf("the server has said nothing for %v", silence)
	}
	if len(a.data) == 0 && !a.reply && !asked {
		return nil
	}
	// Unbuffered: it goes straight to the connection, beside the draining.
	if err := s.conn.Frontend().SendUnbufferedEncodedCopyData(statusUpdate(s.confirmed, time.Now(), asked)); err != nil {
		return fmt.Errorf("confirm WAL: %w", err)
	}
	return nil
}

// judge takes what the server says about itself. A keepalive says how far it
// has sent; it may have flushed, and answered a commit, a moment later. Only
// when the next keepalive says the same was nothing committed by the time of
// the first. The server flushes page by page: that the last record is cut off
// says that what it does has not been committed.
func (s *stream) judge(a arrived) {
	for _, m := range a.alive {
		switch {
		case m.end != s.quiet.end:
			s.quiet = m
		case m.sent.Sub(s.quiet.sent).Abs() > pingEvery/2: // the clock may have been set back
			sure := s.quiet.sent
			s.quiet = m
			if m.end <= s.synced {
				s.ledger.change(func(st *Status) { st.restorable(sure) })
			}
		}
	}
	s.ledger.change(func(st *Status) { st.Backlog = max(0, int64(a.end)-int64(s.synced)) })
}

// next ends the stream on our side, too, and reads which timeline follows.
func (s *stream) next() (next uint32, err error) {
	s.conn.Frontend().Send(&pgproto3.CopyDone{})
	if err := s.conn.Frontend().Flush(); err != nil {
		return 0, fmt.Errorf("end timeline %d: %w", s.timeline, err)
	}
	for {
		msg, err := s.conn.ReceiveMessage(context.Background())
		if err != nil {
			return 0, fmt.Errorf("end timeline %d: %w", s.timeline, err)
		}
		switch msg := msg.(type) {
		case *pgproto3.DataRow:
			if next, err = nextTimeline(msg.Values); err != nil {
				return 0, err
			}
		case *pgproto3.ErrorResponse:
			return 0, fmt.Errorf("end timeline %d: %w", s.timeline, pgconn.ErrorResponseToPgError(msg))
		case *pgproto3.ReadyForQuery:
			if next == 0 {
				return 0, fmt.Errorf("the server ended timeline %d and names no next", s.timeline)
			}
			return next, nil
		}
	}
}
