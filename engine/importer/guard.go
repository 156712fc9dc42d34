package importer

import (
	"bufio"
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/model"
)

// bounds limit a server's answer to one request, in bytes, rows and time.
type bounds struct {
	what    string // the request, for display
	message int64  // bytes of one message, except the data of a COPY
	bytes   int64  // bytes of all messages, except the data of a COPY
	rows    int64  // except those of a COPY
	time    time.Duration
	// copies lets the server send the data of a COPY, for any length of time.
	copies bool
	// whole passes on each message of a COPY as it is, if it has no more bytes than that; 0 cuts them into parts.
	whole int64
}

// Bounds for each kind of request. Lists are held in memory here and take several times their size on the wire; pg_dump
// holds its own results, and has its own memory limit.
var (
	logInBounds   = bounds{what: "the log-in", message: 1 << 20, bytes: 1 << 20, rows: 1, time: time.Minute}
	catalogBounds = bounds{what: "a list of its objects", message: largestMessage, bytes: 64 << 20, rows: 500_000, time: 30 * time.Minute}
	dumpBounds    = bounds{what: "a list of its objects", message: 128 << 20, bytes: 256 << 20, rows: 100_000_000, time: 2 * time.Hour}
	copyBounds    = bounds{what: "rows", message: largestMessage, bytes: largestMessage, copies: true}
)

const (
	// largestMessage limits one message that is held in memory here, in bytes. Much of it is held several times.
	largestMessage = 4 << 20
	// silence is how long a server may send nothing while a read waits for it.
	silence = 10 * time.Minute
	// dataPart is how much of a COPY's data is passed on at a time. Any cut is fine: neither end of a COPY treats a
	// message as a row.
	dataPart = 64 << 10
	// statusBytes limits the parameters that a server reports in a session, which are kept.
	statusBytes = 256 << 10
)

// guard is a connection to an untrusted server. It parses the server's messages, ends the session when they exceed the
// bounds, cuts the data of a COPY into parts, and drops notices and notifications. So the server does not decide how
// much memory its reader needs.
type guard struct {
	net.Conn
	r *bufio.Reader

	bounds  atomic.Pointer[bounds]
	renewed atomic.Bool // something was sent: the next message begins another answer

	reading sync.Mutex // one reader at a time; guards the fields below
	head    []byte     // of a message, to be passed on
	body    int64      // bytes of the message, or of its current part, still to be passed on
	rest    int64      // bytes of a COPY's message that follow
	skip    int64      // bytes of a message to drop
	bytes   int64
	rows    int64
	status  int64
	began   time.Time
	err     error
	timer   *time.Timer
	silent  atomic.Bool
	refused *atomic.Pointer[model.Error] // the first refusal in any session with the source
}

// guard is pgconn's hook for established connections, TLS included.
func (s Source) guard(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
	g := &guard{Conn: conn, refused: s.refused, r: bufio.NewReaderSize(conn, dataPart), began: time.Now()}
	g.timer = time.AfterFunc(silence, func() {
		g.silent.Store(true)
		_ = conn.Close()
	})
	g.timer.Stop()
	expected := logInBounds
	g.bounds.Store(&expected)
	return g, nil
}

// expect sets the bounds of the server's answers, until the next call.
func expect(conn *pgx.Conn, b bounds) {
	if g, ok := conn.PgConn().Conn().(*guard); ok {
		g.bounds.Store(&b)
	}
}

// Write implements net.Conn. The bounds start over for the answer to p.
func (g *guard) Write(p []byte) (int, error) {
	g.renewed.Store(true)
	return g.Conn.Write(p)
}

// Close implements net.Conn.
func (g *guard) Close() error {
	g.timer.Stop()
	return g.Conn.Close()
}

// Read implements net.Conn. It waits only for the first byte.
func (g *guard) Read(p []byte) (n int, err error) {
	g.reading.Lock()
	defer g.reading.Unlock()
	for n < len(p) && (n == 0 || len(g.head) > 0 || g.r.Buffered() > 0) {
		m, err := g.next(p[n:], n == 0)
		n += m
		if err != nil {
			return n, g.failed(err, n)
		}
		if m == 0 && n > 0 {
			break
		}
	}
	return n, nil
}

// failed returns the error of a read: nil if the read has data, as the error occurs again.
func (g *guard) failed(err error, n int) error {
	switch {
	case g.err != nil:
		err = g.err
	case g.silent.Load():
		err = g.refuse(tooMuch("does not answer in time when asked for %s", g.bounds.Load().what))
	}
	if n > 0 {
		return nil
	}
	return err
}

// refuse records why the session has ended: pgconn may report only that it has.
func (g *guard) refuse(refusal *model.Error) error {
	g.err = refusal
	if g.refused != nil {
		g.refused.CompareAndSwap(nil, refusal)
	}
	return g.err
}

// refusal returns why the importer ended a session with the source, or nil.
func (s Source) refusal() error {
	if s.refused == nil || s.refused.Load() == nil {
		return nil
	}
	return s.refused.Load()
}

// next passes on some of the available data. Without wait it returns 0 bytes rather than block.
func (g *guard) next(p []byte, wait bool) (int, error) {
	switch {
	case g.err != nil:
		return 0, g.err
	case len(g.head) > 0:
		n := copy(p, g.head)
		g.head = g.head[n:]
		return n, nil
	case g.body > 0:
		if !wait && g.r.Buffered() == 0 {
			return 0, nil
		}
		return g.hand(p)
	case g.rest > 0:
		g.part()
		return g.next(p, wait)
	case !wait && (g.skip > 0 || g.r.Buffered() < headBytes):
		return 0, nil
	}
	if err := g.begin(); err != nil {
		return 0, err
	}
	return g.next(p, wait)
}

// hand passes on some of a message's body.
func (g *guard) hand(p []byte) (int, error) {
	stop := g.listen()
	n, err := g.r.Read(p[:min(int64(len(p)), g.body)])
	stop()
	g.body -= int64(n)
	return n, err
}

// listen limits how long the server may be silent, and how long an answer may take.
func (g *guard) listen() (stop func()) {
	if g.r.Buffered() > 0 {
		return func() {}
	}
	left := silence
	if b := g.bounds.Load(); b.time > 0 && !g.renewed.Load() {
		left = min(silence, b.time-time.Since(g.began))
	}
	g.timer.Reset(left)
	return func() { g.timer.Stop() }
}

// headBytes is the length of a message's head: its type and its length.
const headBytes = 5

// begin reads the head of the next message that is not dropped.
func (g *guard) begin() error {
	for {
		stop := g.listen()
		skipped, err := g.r.Discard(int(g.skip))
		g.skip -= int64(skipped)
		var head []byte
		if err == nil {
			head, err = g.r.Peek(headBytes)
		}
		stop()
		if err != nil {
			return err
		}
		kind, length := head[0], int64(binary.BigEndian.Uint32(head[1:]))-4
		if refusal := g.admit(kind, length); refusal != nil {
			_ = g.Conn.Close()
			return g.refuse(refusal)
		}
		_, _ = g.r.Discard(headBytes)
		switch {
		case kind == 'N' || kind == 'A':
			g.skip = length
			continue
		case kind == 'd' && g.bounds.Load().whole == 0:
			g.rest = length
			g.part()
		default:
			g.head, g.body = message(kind, length), length
		}
		return nil
	}
}

// part begins the next part of a COPY's message.
func (g *guard) part() {
	g.body = min(g.rest, dataPart)
	g.rest -= g.body
	g.head = message('d', g.body)
}

func message(kind byte, length int64) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, uint32(length+4))
}

// admit counts a message, and refuses it if there are too many or it is too long.
func (g *guard) admit(kind byte, length int64) *model.Error {
	b := g.bounds.Load()
	if g.renewed.Swap(false) {
		g.bytes, g.rows, g.began = 0, 0, time.Now()
	}
	if kind == 'd' && b.copies && length >= 0 && (b.whole == 0 || length <= b.whole) {
		return nil
	}
	g.bytes += headBytes + length
	switch kind {
	case 'D':
		g.rows++
	case 'S':
		g.status += headBytes + length
	}
	switch {
	case length < 0:
		return tooMuch("sends something that is not a message of a PostgreSQL server")
	case length > b.message, kind == 'd':
		return tooMuch("sends a message of %d bytes when asked for %s, and an import takes %d", length, b.what, max(b.message, b.whole))
	case g.bytes > b.bytes, g.status > statusBytes:
		return tooMuch("sends more than %s when asked for %s, which is all that an import takes", megabytes(min(b.bytes, g.bytes)), b.what)
	case g.rows > b.rows && !b.copies:
		return tooMuch("sends more than %d rows when asked for %s, which is all that an import takes", b.rows, b.what)
	case b.time > 0 && time.Since(g.began) > b.time:
		return tooMuch("takes more than %v to answer when asked for %s", b.time, b.what)
	default:
		return nil
	}
}

// tooMuch says that a server has exceeded the bounds, and what helps if it did so honestly.
func tooMuch(format string, args ...any) *model.Error {
	return model.Invalid(SourceField, "the server "+format+"; check that it is a PostgreSQL server, and copy what is too large for an import with pg_dump, part by part", args...)
}
