package engine

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// The server is killed during an operation, a little later each time. The error is a conflict, whatever breaks, and the
// record takes effect once the server is back.
func TestServerKilledUnderAct(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	if _, err := connect(t, connection).Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	acts := []func() error{
		func() error {
			_, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, true)
			return err
		},
		func() error {
			_, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.0/8"})
			return err
		},
		func() error {
			_, err := a.Databases.RLSSet(t.Context(), a.call(model.ActionRLSSet), db.ID, databases.RLSChange{Table: "t", Enabled: true})
			return err
		},
		func() error {
			_, err := a.Databases.RLSGet(t.Context(), a.call(model.ActionRLSGet), db.ID, "")
			return err
		},
	}
	for n := range 2 * len(acts) {
		a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
		pid, ended := a.pid(t, db.ID), make(chan error, 1)
		go func() { ended <- acts[n%len(acts)]() }()
		time.Sleep(time.Duration(n/len(acts)) * 2 * time.Millisecond) // the moment of death
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil && model.CodeOf(err) != model.CodeConflict {
			t.Errorf("act %d: %v", n, err)
		}
		a.mustLogIn(t, db.ID)
	}
}

// A branch of a server that recovers from the death of one of its processes is made or refused with a conflict.
func TestBranchWhileServerRecovers(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), neverCloning)
	db, connection := a.createDatabase(t, "shop")
	a.backUp(t, db.ID)
	for n := range 6 {
		a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
		conn := connect(t, connection)
		if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Exec(t.Context(), "select") // waits for the postmaster to end all sessions
		if err == nil {
			t.Fatal("the session lives on")
		}
		made, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: fmt.Sprintf("n%d", n)})
		switch {
		case err == nil:
			a.awaitOperation(t, made.Started, model.OperationCompleted)
		case model.CodeOf(err) != model.CodeConflict:
			t.Errorf("branch %d: %v", n, err)
		}
		a.mustLogIn(t, db.ID)
	}
}

// mustLogIn checks that the owner can log in with the recorded password once the database is available.
func (a *appliance) mustLogIn(t *testing.T, id string) {
	t.Helper()
	var err error
	if !testenv.Poll(time.Minute, func() bool {
		var c databases.Connection
		if c, err = a.Databases.Connection(a.call(model.ActionDatabaseConnection), id); err != nil {
			t.Fatal(err)
		}
		var conn *pgx.Conn
		if conn, err = pgx.Connect(t.Context(), c.URL()); err != nil {
			return false
		}
		_ = conn.Close(context.Background())
		return true
	}) {
		t.Fatalf("the owner cannot log in: %v", err)
	}
}

// A server without a free connection slot causes a conflict with a clear message.
func TestServerFull(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	testenv.Within(t, 30*time.Second, "a refusal", func() bool {
		for range 40 {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", db.Port))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := a.Databases.RLSGet(ctx, a.call(model.ActionRLSGet), db.ID, "")
		full := model.CodeOf(err) == model.CodeConflict && strings.Contains(model.PublicMessage(err), "connections")
		if err == nil || ctx.Err() != nil && !full {
			return false // it was let in, at most late
		}
		if !full {
			t.Errorf("refused with %v", err)
		}
		return true
	})
}
