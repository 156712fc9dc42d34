package importer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
)

// flood proxies an origin and answers one query endlessly: it repeats the first row, or the end, of the true answer, or
// sends another message.
type flood struct {
	from    *origin
	query   string // the prefix of the query to flood, the first time
	message []byte // nil for the true answer's message

	flooded atomic.Bool
	sent    atomic.Int64
}

func (f *flood) start(t *testing.T) Source {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(client) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	source := f.from.source()
	source.Port, source.sslMode = l.Addr().(*net.TCPAddr).Port, "disable"
	return source
}

// serve passes on messages until it floods.
func (f *flood) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.from.Spec.Config.Port)))
	if err != nil {
		return
	}
	var armed atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer client.Close()
		for r := bufio.NewReader(server); ; {
			message, kind, err := readMessage(r, true)
			switch {
			case err != nil:
				return
			case armed.Load() && f.message != nil:
				f.pour(client, f.message)
				return
			case armed.Load() && (kind == 'D' || kind == 'C'):
				f.pour(client, message)
				return
			}
			if _, err := client.Write(message); err != nil {
				return
			}
		}
	})
	defer back.Wait()
	defer server.Close()
	for typed := false; ; typed = true {
		message, kind, err := readMessage(client, typed)
		if err != nil {
			return
		}
		if kind == 'Q' {
			if bytes.HasPrefix(message[5:], []byte(f.query)) && f.flooded.CompareAndSwap(false, true) {
				armed.Store(true)
			}
		}
		if _, err := server.Write(message); err != nil {
			return
		}
	}
}

func readMessage(r io.Reader, typed bool) (message []byte, kind byte, err error) {
	head := make([]byte, 4)
	if typed {
		head = make([]byte, 5)
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	if typed {
		kind = head[0]
	}
	length := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
	message = append(head, make([]byte, length)...)
	_, err = io.ReadFull(r, message[len(head):])
	return message, kind, err
}

func (f *flood) pour(client net.Conn, message []byte) {
	part := message
	for len(part) < 1<<20 {
		part = append(part, message...)
	}
	var err error
	for err == nil && f.sent.Load() < endless {
		var n int
		n, err = client.Write(part)
		f.sent.Add(int64(n))
	}
}

// encode encodes a server's message.
func encode(t *testing.T, m pgproto3.BackendMessage) []byte {
	t.Helper()
	b, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// endless is a number of bytes that exceeds every bound.
const endless = 2 << 30

// mostGrowth is the most memory that a kept answer may take, in bytes.
const mostGrowth = 300 << 20

// TestFloods answers various queries of an import endlessly, at various times. The import ends with an error that says
// so, and the process grows no more than the bounds allow. It does not run in parallel: it measures the whole process.
func TestFloods(t *testing.T) {
	from, to := newOrigin(t, "create table t (n int primary key, m text); create sequence s; select nextval('s'); insert into t select generate_series(1, 100)"), newPlace(t)
	for _, query := range []string{
		firstQuery, "begin transaction isolation level repeatable", "select current_setting", "select e.extname", tablesQuery, "select c.oid, n.oid",
		"lock table only", "set search_path", dumpQuery, "select sum(h)", "select q, pg_sequence_last_value", "select 1", "select count(*) from pg_proc",
	} {
		(&flood{from: from, query: query}).check(t, to)
	}
}

// The queries to flood.
const (
	firstQuery  = "select pg_catalog.pg_backend_pid()"
	tablesQuery = "select c.oid, n.nspname::text, c.relname::text,\n\t\tarray"
	dumpQuery   = "SELECT c.tableoid" // pg_dump's
)

// TestFloodsOfOtherMessages is TestFloods with messages that answer no query.
func TestFloodsOfOtherMessages(t *testing.T) {
	from, to := newOrigin(t, "create table t (n int)"), newPlace(t)
	for name, message := range map[string][]byte{
		"huge rows":     encode(t, &pgproto3.DataRow{Values: [][]byte{make([]byte, 100<<20)}}),
		"descriptions":  encode(t, &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("c"), DataTypeOID: 25}}}),
		"notices":       encode(t, &pgproto3.NoticeResponse{Severity: "WARNING", Message: strings.Repeat("x", 1000)}),
		"notifications": encode(t, &pgproto3.NotificationResponse{Channel: "c", Payload: strings.Repeat("x", 1000)}),
		"errors":        encode(t, &pgproto3.ErrorResponse{Severity: "ERROR", Code: "XX000", Message: strings.Repeat("x", 1000)}),
		"parameters":    parameters(t),
		"data":          encode(t, &pgproto3.CopyData{Data: []byte("1\n")}),
	} {
		for _, query := range []string{firstQuery, dumpQuery} {
			t.Logf("%s:", name)
			(&flood{from: from, query: query, message: message}).check(t, to)
		}
	}
}

// TestHugeRow: a COPY row of any length is passed on while it arrives.
func TestHugeRow(t *testing.T) {
	from, to := newOrigin(t, "create table t (m text); insert into t values (repeat('x', 200 * 1024 * 1024))"), newPlace(t)
	if grown, err := to.grow(t, from.source()); err != nil || grown > 100<<20 {
		t.Errorf("%d MB grown: %v", grown>>20, err)
	}
	if got := ask(t, to.Superuser(t, "app"), "select length(m) from public.t"); got != "209715200\n" {
		t.Errorf("it has %s characters", got)
	}
}

// TestLimitOfPgDump: the error says so if pg_dump needs more memory than its limit.
func TestLimitOfPgDump(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the limit is of Linux")
	}
	from, to := newOrigin(t, `do $$ begin for i in 1..20 loop
		execute format('create function f%s() returns text language sql as %L', i, format('select %L', repeat('x', 1000000))); end loop; end $$`), newPlace(t)
	session, err := Open(t.Context(), from.source(), NewAccount(model.Import{}, time.Now))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	to.check(t, session)
	job := to.job(t, to.open)
	job.DumpMemory = 12 << 20
	if err := session.Copy(t.Context(), job); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "needs more memory") {
		t.Errorf("%v", err)
	}
}

// check imports from a flood.
func (f *flood) check(t *testing.T, to *place) {
	t.Helper()
	grown, err := to.grow(t, f.start(t))
	t.Logf("%d MB sent, %d MB grown by %s: %v", f.sent.Load()>>20, grown>>20, f.query, err)
	if !f.flooded.Load() {
		t.Errorf("%s is not asked", f.query)
	}
	if f.sent.Load() >= endless {
		t.Errorf("nothing stops the answer to %s", f.query)
	}
	if grown > mostGrowth {
		t.Errorf("the answer to %s takes %d MB", f.query, grown>>20)
	}
	if err == nil || !strings.Contains(err.Error(), "when asked for") {
		t.Errorf("the answer to %s ends the import with %v", f.query, err)
	}
}

// parameters returns many parameter reports with different names.
func parameters(t *testing.T) (messages []byte) {
	for i := range 20_000 {
		messages = append(messages, encode(t, &pgproto3.ParameterStatus{Name: fmt.Sprintf("p%d", i), Value: strings.Repeat("x", 100)})...)
	}
	return messages
}

// grow imports, and returns the largest growth of the process.
func (p *place) grow(t *testing.T, from Source) (int64, error) {
	t.Helper()
	run(t, p.Superuser(t, "app"), "drop schema if exists public cascade; create schema public authorization app")
	runtime.GC()
	debug.FreeOSMemory()
	before, most := resident(t), int64(0)
	ctx, cancel := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			most = max(most, resident(t))
			time.Sleep(5 * time.Millisecond)
		}
	})
	err := p.copyWith(t, from, NewAccount(model.Import{}, time.Now), func(ctx context.Context, _ uint32) (*pgx.Conn, error) { return p.open(ctx) })
	cancel()
	watch.Wait()
	return most - before, err
}

// resident returns the resident memory of the process, in bytes.
func resident(t *testing.T) int64 {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the system does not say how much memory a process has")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(statm))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
