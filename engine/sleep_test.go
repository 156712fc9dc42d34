package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A database that sleeps has no server. A client that connects wakes it, however many do at
// once, and it has everything; so has its archive. It sleeps on across a restart of the
// appliance.
func TestSleepAndWake(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	first := connect(t, connection)
	if _, err := first.Exec(t.Context(), "create table t as select 1 as n"); err != nil {
		t.Fatal(err)
	}
	a.edit(t, db.ID, func(d *model.Database) { d.Settings = map[string]string{"max_connections": "110"} })
	a.letSleep(t, db.ID, 10*time.Second)
	if err := first.Ping(t.Context()); err == nil {
		t.Error("the switch did not restart the server")
	}
	again := connect(t, connection)
	if _, err := again.Exec(t.Context(), "insert into t values (2)"); err != nil {
		t.Fatal(err)
	}
	sessions, err := a.Databases.SessionList(t.Context(), a.call(model.ActionDatabaseSessionList), db.ID)
	if err != nil || len(sessions) != 1 || sessions[0].Address != "127.0.0.1" {
		t.Errorf("sessions: %+v, %v", sessions, err)
	}
	_ = again.Close(t.Context())
	a.awaitSleep(t, db.ID)
	view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID)
	if err != nil || view.Status != model.DatabaseAvailable || !view.Asleep {
		t.Errorf("asleep: %+v, %v", view, err)
	}
	if sessions, err := a.Databases.SessionList(t.Context(), a.call(model.ActionDatabaseSessionList), db.ID); err != nil || len(sessions) != 0 {
		t.Errorf("sessions of a database that sleeps: %+v, %v", sessions, err)
	}
	if !a.Databases.IsAsleep(db.ID) {
		t.Error("a list woke it")
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			conn, err := pgx.Connect(t.Context(), connection.URL())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			n := 0
			if err := conn.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d rows, %v", n, err)
			}
		})
	}
	all.Wait()
	a.awaitSleep(t, db.ID)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := startEngineOn(t, a.cfg)
	testenv.Eventually(t, "the database", func() bool { return b.Databases.IsAsleep(db.ID) })
	began := time.Now()
	conn := connect(t, connection)
	n := 0
	if err := conn.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v", n, err)
	}
	t.Logf("woken in %v", time.Since(began))
}

// No client that is not allowed wakes a database, and neither does a connection alone. The
// allow-list also ends the sessions that it excludes. It cannot exclude the address from
// which the server sees every client. A change waits until the database has fallen asleep.
func TestSleepRefuses(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	a.letSleep(t, db.ID, 10*time.Second)
	set := func(entries ...string) (databases.Allowlist, error) {
		return a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, entries)
	}
	session, err := connectFrom(t, connection, "127.0.0.2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set("10.0.0.0/8", "127.0.0.2"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("an allow-list that the server cannot enforce: %v", err)
	}
	if err := session.Ping(t.Context()); err != nil {
		t.Errorf("a refused allow-list: %v", err)
	}
	if list, err := set("127.0.0.1"); err != nil || list.SessionsTerminated != 1 {
		t.Errorf("ended %d sessions, %v", list.SessionsTerminated, err)
	}
	if err := session.Ping(t.Context()); err == nil {
		t.Error("a session that is no longer allowed goes on")
	}
	a.sleepSoon(t, db.ID)
	if _, err := connectFrom(t, connection, "127.0.0.2"); !turnedAway(err) {
		t.Errorf("connecting from an address that is not allowed: %v", err)
	}
	for range 3 { // at once: it is falling asleep
		for _, entries := range [][]string{{}, {"127.0.0.1"}} {
			if _, err := set(entries...); err != nil {
				t.Fatal(err)
			}
			a.awaitSleep(t, db.ID)
		}
	}
	for _, sent := range [][]byte{nil, {0, 0, 0, 8, 4, 210, 22, 47}, []byte("GET / HTTP/1.1\r\n\r\n")} { // nothing, an SSLRequest, HTTP
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(db.Port)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(sent); err != nil {
			t.Error(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = io.ReadAll(conn)
		conn.Close()
	}
	if !a.Databases.IsAsleep(db.ID) {
		t.Error("a refused client woke it")
	}
}

// connectFrom connects from an address of this machine.
func connectFrom(t testing.TB, c databases.Connection, from string) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	config.DialFunc = dialer.DialContext
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// turnedAway reports whether an error says that a client is not allowed.
func turnedAway(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "28000"
}

func (a *appliance) letSleep(t testing.TB, id string, after time.Duration) {
	t.Helper()
	if _, err := a.Databases.Update(t.Context(), a.call(model.ActionDatabaseUpdate), id, databases.Change{SleepAfter: &after}); err != nil {
		t.Fatal(err)
	}
}

func (a *appliance) awaitSleep(t testing.TB, id string) {
	t.Helper()
	testenv.Eventually(t, "sleep", func() bool { return a.Databases.IsAsleep(id) })
}

// sleepSoon makes a database that may sleep do so at the next opportunity, and waits.
func (a *appliance) sleepSoon(t testing.TB, id string) {
	t.Helper()
	a.edit(t, id, func(d *model.Database) { d.SleepAfter = time.Millisecond })
	testenv.Eventually(t, "sleep", func() bool { return a.Databases.Rests(id) })
}
