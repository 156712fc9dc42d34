package importer

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
)

// pooler proxies an origin and lends its sessions, for a transaction or for as long as the client stays. Its greetings
// contain a made-up process ID.
type pooler struct {
	t       *testing.T
	from    *origin
	session bool
	first   bool          // lends the session that has rested longest
	late    time.Duration // how long after an answer it reclaims a session
	most    int           // the maximum number of clients at a time, 0 for no limit
	port    int

	mu    sync.Mutex
	busy  int
	idle  []*pgconn.HijackedConn
	left  []string // settings that clients left behind
	ended sync.WaitGroup
}

func newPooler(t *testing.T, from *origin, p *pooler) *pooler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.t, p.from, p.port = t, from, l.Addr().(*net.TCPAddr).Port
	for range 2 {
		p.idle = append(p.idle, p.open())
	}
	p.ended.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.ended.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.ended.Wait()
		if len(p.left) > 0 {
			t.Errorf("the import left set: %v", p.left)
		}
		for _, session := range p.idle {
			session.Conn.Close()
		}
	})
	return p
}

func (p *pooler) source() Source {
	source := p.from.source()
	source.Port, source.sslMode = p.port, "disable"
	return source
}

func (p *pooler) open() *pgconn.HijackedConn {
	conn, err := p.from.source().connect(p.t.Context())
	if err != nil {
		p.t.Errorf("connect: %v", err)
		return nil
	}
	expect(conn, bounds{message: 1 << 30, bytes: 1 << 30, rows: 1 << 30, copies: true}) // whatever the client requests
	session, err := conn.PgConn().Hijack()
	if err != nil {
		p.t.Error(err)
	}
	return session
}

func (p *pooler) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 0 && p.busy == p.most {
		return false
	}
	p.busy++
	return true
}

func (p *pooler) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
}

func (p *pooler) lend() *pgconn.HijackedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := len(p.idle) - 1
	if p.first {
		at = min(0, at)
	}
	if at < 0 {
		return p.open()
	}
	session := p.idle[at]
	p.idle = append(p.idle[:at:at], p.idle[at+1:]...)
	return session
}

func (p *pooler) takeBack(session *pgconn.HijackedConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session {
		p.relay(session, "discard all", nil)
	}
	p.left = append(p.left, p.relay(session, "select name from pg_settings where source = 'session'", nil)...)
	p.idle = append(p.idle, session)
}

func (p *pooler) serve(conn net.Conn) {
	defer conn.Close()
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	if !p.enter() {
		client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "XX000", Message: "everybody is here already"})
		_ = client.Flush()
		return
	}
	defer p.leave()
	session := p.lend()
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range session.ParameterStatuses {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.BackendKeyData{ProcessID: session.PID + 1_000_000, SecretKey: []byte{1, 2, 3, 4}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	session.TxStatus = 'I'
	for client.Flush() == nil {
		if session != nil && session.TxStatus == 'I' && !p.session {
			time.Sleep(p.late)
			p.takeBack(session)
			session = nil
		}
		message, err := client.Receive()
		query, ok := message.(*pgproto3.Query)
		if err != nil || !ok {
			break
		}
		if session == nil {
			session = p.lend()
		}
		p.relay(session, query.String, client)
	}
	switch {
	case session == nil:
	case session.TxStatus == 'I':
		p.takeBack(session)
	default:
		session.Conn.Close()
	}
}

// relay has a session answer a query, and returns the first column.
func (p *pooler) relay(session *pgconn.HijackedConn, query string, client *pgproto3.Backend) (column []string) {
	session.Frontend.SendQuery(&pgproto3.Query{String: query})
	if err := session.Frontend.Flush(); err != nil {
		p.t.Errorf("send: %v", err)
	}
	for {
		message, err := session.Frontend.Receive()
		if err != nil {
			p.t.Errorf("receive: %v", err)
			session.TxStatus = 'E'
			return nil
		}
		if client != nil {
			client.Send(message)
			_ = client.Flush()
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			column = append(column, string(m.Values[0]))
		case *pgproto3.ReadyForQuery:
			session.TxStatus = m.TxStatus
			return column
		}
	}
}

// TestPoolers: a pooler in transaction mode is refused, and gets no session back with changed settings; one in session
// mode is as good as the server, however few sessions it has.
func TestPoolers(t *testing.T) {
	t.Parallel()
	from := newOrigin(t, "create table a as select generate_series(1, 100) n; create table b as select * from a; create table c as select * from a; alter database app set standard_conforming_strings = off")
	for name, p := range map[string]*pooler{"last": {}, "first": {first: true}, "last, late": {late: 3 * time.Millisecond}} {
		newPooler(t, from, p)
		_, err := newPlace(t).bring(t, p.source())
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "port for sessions") {
			t.Errorf("lends what rests %s: %v", name, err)
		}
	}
	for _, most := range []int{0, 2} {
		p := newPooler(t, from, &pooler{session: true, most: most})
		record, err := newPlace(t).bring(t, p.source())
		if err != nil || len(record.Errors) > 0 || record.RowsCopied != 300 {
			t.Errorf("lends for the session, to %d clients: %+v, %v", most, record, err)
		}
	}
	p := newPooler(t, from, &pooler{session: true, most: 1})
	if _, err := Open(t.Context(), p.source(), NewAccount(model.Import{}, time.Now)); err == nil || !strings.Contains(err.Error(), "everybody is here already") {
		t.Errorf("lends to one client: %v", err)
	}
}
