package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// backend is a server that sends back what it is sent, and is started once.
type backend struct {
	l     net.Listener
	wakes atomic.Int32
	begin chan struct{} // closed when it may start
	fails bool
}

// open starts a backend and a proxy of it.
func open(t *testing.T, b *backend, allow ...string) (p *Proxy, address string) {
	t.Helper()
	var err error
	if b.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := b.l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	rules := Rules{Database: "shop", Users: []string{"app"}}
	for _, prefix := range allow {
		rules.Allow = append(rules.Allow, netip.MustParsePrefix(prefix))
	}
	p, err = Open(Options{
		Listen: []string{"127.0.0.1"}, Rules: rules, Directory: func() string { return t.TempDir() }, Log: slog.New(slog.DiscardHandler),
		Running: func() (string, bool) { return b.l.Addr().String(), b.wakes.Load() > 0 },
		Wake: func(ctx context.Context) (string, error) {
			b.wakes.Add(1)
			if b.fails {
				return "", errors.New("it does not start")
			}
			if b.begin != nil {
				select {
				case <-b.begin:
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
			return b.l.Addr().String(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), p.Close(), b.l.Close()); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
	return p, p.listeners[0].Addr().String()
}

// dial connects and sends bytes.
func dial(t *testing.T, address string, send []byte) net.Conn {
	t.Helper()
	return dialFrom(t, address, "", send)
}

// A hundred clients at once reach a server that is started for the first of them, and each gets its own bytes.
func TestForward(t *testing.T) {
	t.Parallel()
	b := &backend{begin: make(chan struct{})}
	p, address := open(t, b, "127.0.0.1/32")
	message := startup("user", "app", "database", "shop")
	var all sync.WaitGroup
	for n := range 100 {
		conn := dial(t, address, message)
		all.Go(func() {
			defer conn.Close()
			own := strings.Repeat(string(rune('a'+n%26)), 100<<10)
			go func() { _, _ = io.WriteString(conn, own) }()
			got := make([]byte, len(message)+len(own))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != string(message)+own {
				t.Errorf("client %d: %d bytes, %v", n, len(got), err)
			}
		})
	}
	testenv.Eventually(t, "a hundred clients", func() bool { return p.Usage().Clients == 100 })
	if p.Usage().Idle {
		t.Error("it is idle with clients that wait")
	}
	close(b.begin)
	all.Wait()
	testenv.Eventually(t, "the end of the clients", func() bool { return p.Usage().Idle })
}

// A client that is not named by the rules, or does not ask for a session, does not start the server.
func TestRefuse(t *testing.T) {
	t.Parallel()
	b := &backend{}
	p, address := open(t, b, "127.0.0.1/32")
	expect := func(what string, send []byte, want string) {
		t.Helper()
		conn := dial(t, address, send)
		_ = conn.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(conn)
		if !strings.Contains(string(got), want) || want == "" && len(got) > 0 {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("another user", startup("user", "eve", "database", "shop"), `no pg_hba.conf entry for host "127.0.0.1", user "eve"`)
	expect("another database", startup("user", "app", "database", "postgres"), "no pg_hba.conf entry")
	expect("rubbish", []byte("GET / HTTP/1.1\r\n\r\n"), "")
	expect("a cancellation while it sleeps", packet(cancelRequest, "pidkkkk!"), "")
	creating := Rules{
		Database: "shop", Users: []string{"app", "ci"}, Creators: []string{"ci"}, Refused: []string{"template1"}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	p.SetRules(creating)
	expect("a user of one database in another", startup("user", "app", "database", "tests"), "no pg_hba.conf entry")
	expect("a database that is refused", startup("user", "ci", "database", "template1"), "no pg_hba.conf entry")
	p.SetRules(Rules{Database: "shop", Users: []string{"app"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	expect("another address", startup("user", "app", "database", "shop"), "no pg_hba.conf entry")
	if n := b.wakes.Load(); n > 0 {
		t.Errorf("they started the server %d times", n)
	}
	b.fails = true
	p.SetRules(creating)
	expect("a database that its user has created", startup("user", "ci", "database", "tests"), "could not be started")
	p.SetRules(Rules{Database: "shop", Users: []string{"app"}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	expect("a server that does not start", startup("user", "app", "database", "shop"), "could not be started")
}

// Connections that ask for nothing are bounded in number and in time.
func TestSilentStrangers(t *testing.T) {
	t.Parallel()
	b := &backend{}
	p, address := open(t, b, "127.0.0.1/32")
	began := time.Now()
	silent := make([]net.Conn, mostOpenOf)
	for n := range silent {
		silent[n] = dial(t, address, []byte{0, 0}) // part of a length
	}
	testenv.Eventually(t, "the connections", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pending == mostOpenOf
	})
	next, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	_ = next.SetReadDeadline(time.Now().Add(openingTime / 2))
	if _, err := next.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("one connection too many: %v", err)
	}
	for _, conn := range silent {
		_ = conn.SetReadDeadline(began.Add(4 * openingTime))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("a silent connection after %v: %v", time.Since(began), err)
		}
	}
	if b.wakes.Load() > 0 {
		t.Error("they started the server")
	}
	conn := dial(t, address, startup("user", "app", "database", "shop"))
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		t.Errorf("a client afterwards: %v", err)
	}
}

// silentFrom opens connections from an address of the machine that say nothing.
func silentFrom(t *testing.T, address, from string, count int) []net.Conn {
	t.Helper()
	silent := make([]net.Conn, count)
	for n := range silent {
		silent[n] = dialFrom(t, address, from, nil)
	}
	return silent
}

// dialFrom is dial from an address of the machine, "" for any.
func dialFrom(t *testing.T, address, from string, send []byte) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(send); err != nil {
		t.Fatal(err)
	}
	return conn
}

// answered reports whether a connection is answered before silent ones are given up.
func answered(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(openingTime / 2))
	_, err := conn.Read(make([]byte, 1))
	return err == nil
}

// Addresses that the rules exclude take no place of those that they admit, and are told so as long as they are few.
func TestExcludedKeepNobodyOut(t *testing.T) {
	t.Parallel()
	p, address := open(t, &backend{}, "127.0.0.1/32")
	message := startup("user", "app", "database", "shop")
	if !answered(dialFrom(t, address, "127.0.0.2", message)) {
		t.Error("one that is excluded is not told so")
	}
	silentFrom(t, address, "127.0.0.2", mostOpenOf)
	silentFrom(t, address, "127.0.0.3", mostOpenOf)
	if answered(dialFrom(t, address, "127.0.0.4", message)) {
		t.Error("there is no limit to those that are excluded")
	}
	if !answered(dial(t, address, message)) {
		t.Error("one that is admitted is kept out")
	}
	testenv.Eventually(t, "the end of the silent connections", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.opening) == 0 && p.pending == 0
	})
}

// Two admitted addresses whose connections say nothing do not keep a third out: the oldest of one makes way.
func TestSilentMakeWay(t *testing.T) {
	t.Parallel()
	p, address := open(t, &backend{}, "127.0.0.0/8")
	first, second := silentFrom(t, address, "127.0.0.2", mostOpenOf), silentFrom(t, address, "127.0.0.3", mostOpenOf)
	testenv.Eventually(t, "the connections", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pending == mostOpening
	})
	if !answered(dial(t, address, startup("user", "app", "database", "shop"))) {
		t.Error("a third is kept out")
	}
	gone := 0
	for _, conn := range []net.Conn{first[0], second[0], first[1], second[1]} {
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("%d of the oldest made way", gone)
	}
}

// Addresses that were blocked are forgotten, also if they do not come again.
func TestBlockedAreForgotten(t *testing.T) {
	t.Parallel()
	p, address := open(t, &backend{}, "127.0.0.1/32")
	p.blocked[netip.MustParseAddr("192.0.2.1")] = time.Now().Add(-time.Second)
	p.blocked[netip.MustParseAddr("192.0.2.2")] = time.Now().Add(time.Minute)
	if !answered(dial(t, address, startup("user", "app", "database", "shop"))) {
		t.Fatal("no answer")
	}
	var port int
	p.mu.Lock()
	for c := range p.clients {
		port = portOf(c.server)
	}
	p.mu.Unlock()
	p.Block(port)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.blocked) != 2 || p.blocked[netip.MustParseAddr("192.0.2.1")] != (time.Time{}) {
		t.Errorf("blocked are %v", p.blocked)
	}
}
