package engine

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

func TestDatabaseRestart(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	old := connect(t, connection)
	view, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
	if err != nil || view.Status != model.DatabaseAvailable || view.Operation != "" {
		t.Fatalf("restart: %+v, %v", view, err)
	}
	if err := old.Ping(t.Context()); err == nil {
		t.Error("the session outlived the restart")
	}
	connect(t, connection)
}

func TestDatabaseRotatePassword(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, before := a.createDatabase(t, "shop")
	session := connect(t, before)
	rotation, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, true)
	if err != nil {
		t.Fatal(err)
	}
	if rotation.SessionsTerminated != 1 {
		t.Errorf("ended %d sessions, not 1", rotation.SessionsTerminated)
	}
	if err := session.Ping(t.Context()); err == nil {
		t.Error("the session goes on")
	}
	if _, err := pgx.Connect(t.Context(), before.URL()); err == nil {
		t.Error("the old password still works")
	}
	connect(t, rotation.Connection)
}

func TestReadOnlyConnection(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	owner := connect(t, connection)
	if _, err := owner.Exec(t.Context(), "create table t (n int); insert into t values (7)"); err != nil {
		t.Fatal(err)
	}
	call := a.call(model.ActionDatabaseConnection)
	call.Key.Scopes = model.PresetReadOnly.Scopes()
	readOnly, err := a.Databases.Connection(call, db.ID)
	if err != nil || !readOnly.ReadOnly || readOnly.User == connection.User {
		t.Fatalf("connection: %+v, %v", readOnly, err)
	}
	reader := connect(t, readOnly)
	var n int
	if err := reader.QueryRow(t.Context(), "select n from t").Scan(&n); err != nil || n != 7 {
		t.Errorf("read %d, %v", n, err)
	}
	for _, sql := range []string{
		"set default_transaction_read_only = off; insert into t values (1)",
		"set default_transaction_read_only = off; create table u (n int)",
		"set default_transaction_read_only = off; create temp table u (n int)",
	} {
		if _, err := reader.Exec(t.Context(), sql); err == nil {
			t.Errorf("the read-only role may: %s", sql)
		}
	}
}

func TestDatabaseDeleteAndTrash(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	if _, err := connect(t, connection).Exec(t.Context(), "create table t (n int); insert into t values (7)"); err != nil {
		t.Fatal(err)
	}
	until, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID)
	if err != nil || time.Until(until) < 59*time.Minute {
		t.Fatalf("delete: until %s, %v", until, err)
	}
	if _, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("deleted database: %v", err)
	}
	if _, err := pgx.Connect(t.Context(), connection.URL()); err == nil {
		t.Error("the deleted database lets clients in")
	}
	leaving, leave := context.WithCancel(t.Context())
	leave() // a client that has gone does not keep the server from starting
	if _, err := a.Databases.TrashRestore(leaving, a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Fatalf("restore from trash: %v", err)
	}
	if status, reason := a.Databases.LiveStatus(a.record(t, db.ID)); status != model.DatabaseAvailable {
		t.Errorf("after the trash it is %s: %s", status, reason)
	}
	var n int
	if err := connect(t, connection).QueryRow(t.Context(), "select n from t").Scan(&n); err != nil || n != 7 {
		t.Errorf("after the trash: %d, %v", n, err)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	if removed, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err != nil || removed != (Emptied{Databases: 1}) {
		t.Fatalf("empty trash: %d, %v", removed, err)
	}
	entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{Action: string(model.ActionTrashEmpty)}, 1, core.MaxLimit)
	if err != nil || len(entries) != 1 || entries[0].Resource.ID != db.ID {
		t.Errorf("audited %+v, %v", entries, err)
	}
	if _, err := os.Stat(a.Databases.DatabaseDirectory(db.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files are still there: %v", err)
	}
}

func TestAllowlist(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	session := connect(t, connection)
	set := func(entries ...string) (databases.Allowlist, error) {
		return a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, entries)
	}
	list, err := set("10.0.0.0/8", "10.0.0.0/8", "192.0.2.1")
	if err != nil || len(list.Entries) != 2 || list.SessionsTerminated != 1 {
		t.Fatalf("set: %+v, %v", list, err)
	}
	if got, err := a.Databases.AllowlistGet(a.call(model.ActionAllowlistGet), db.ID); err != nil || !got.AppliedAt.Equal(list.AppliedAt) || !got.AppliedAt.After(got.UpdatedAt) {
		t.Errorf("wanted at %v, in force at %v, was told %v, %v", got.UpdatedAt, got.AppliedAt, list.AppliedAt, err)
	}
	if err := session.Ping(t.Context()); err == nil {
		t.Error("a session that is no longer allowed goes on")
	}
	_, err = pgx.Connect(t.Context(), connection.URL())
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "28000" {
		t.Errorf("connecting from an address that is not allowed: %v", err)
	}
	if _, err := set("127.0.0.1/8"); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("host bits: %v", err)
	}
	if _, err := set("127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	connect(t, connection)
}

// Clients that are allowed before and after a change of the allow-list notice nothing, however many connect and
// disconnect meanwhile.
func TestAllowlistLeavesTheAllowed(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	from := func(ctx context.Context, address string) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(c.URL())
		if err != nil {
			return nil, err
		}
		config.DialFunc = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
		return pgx.ConnectConfig(ctx, config)
	}
	ctx, enough := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer enough()
	var done, ended atomic.Int64
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				conn, err := from(ctx, "127.0.0.1")
				if err != nil {
					continue
				}
				if _, err := conn.Exec(ctx, "select pg_sleep(0.02)"); err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					ended.Add(1)
				}
				_ = conn.Close(context.WithoutCancel(ctx))
			}
		})
	}
	for range 3 {
		if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.0/8"}); err != nil {
			t.Fatal(err)
		}
		for before := done.Load(); done.Load() < before+20; time.Sleep(time.Millisecond) {
			if t.Context().Err() != nil {
				t.Fatal("no client gets in")
			}
		}
		out, err := from(t.Context(), "127.0.0.2")
		if err != nil {
			t.Fatal(err)
		}
		list, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"})
		if err != nil || list.SessionsTerminated != 1 {
			t.Errorf("ended %d sessions, %v", list.SessionsTerminated, err)
		}
		_ = out.Close(t.Context())
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("%d sessions of those allowed were ended", n)
	}
}

func TestKilledPostmasterComesBack(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	_, _, pid := a.Databases.Instances.Status(db.ID)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the database's return", func() bool {
		_, _, now := a.Databases.Instances.Status(db.ID)
		view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID)
		return err == nil && view.Status == model.DatabaseAvailable && now != 0 && now != pid
	})
	connect(t, connection)
	testenv.Eventually(t, "the audit entries", func() bool {
		entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{}, 1, 100)
		has := func(action model.Action) bool {
			return slices.ContainsFunc(entries, func(e model.AuditEntry) bool { return e.Action == action && e.Actor.Type == model.ActorSystem })
		}
		return err == nil && has(model.ActionInstanceDown) && has(model.ActionInstanceUp)
	})
}

func TestOneActAtATime(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	const tries = 10
	var restarted, refused, other int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range tries {
		all.Go(func() {
			_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
			mu.Lock()
			defer mu.Unlock()
			switch model.CodeOf(err) {
			case "":
				restarted++
			case model.CodeConflict:
				refused++
			default:
				other++
				t.Errorf("restart: %v", err)
			}
		})
	}
	all.Wait()
	if restarted == 0 || restarted+refused != tries {
		t.Errorf("%d restarted, %d refused, %d failed", restarted, refused, other)
	}
	connect(t, connection)
}
