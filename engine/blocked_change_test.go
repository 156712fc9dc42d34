package engine

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/testenv"
)

// impatient makes an engine resort to force soon.
func impatient(e *Engine) {
	e.Databases.Timeouts = databases.Timeouts{Start: 5 * time.Minute, Stop: time.Second, Clean: time.Second, Sessions: time.Second, WAL: 10 * time.Minute}
}

// stick opens a session that does not end when told to, and first runs the statements in it.
func stick(t *testing.T, c databases.Connection, first ...string) {
	t.Helper()
	conn := connect(t, c)
	for _, sql := range first {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(int(conn.PgConn().PID()), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// loginRefused checks that a password is no longer accepted.
func loginRefused(t *testing.T, c databases.Connection) {
	t.Helper()
	if conn, err := pgx.Connect(t.Context(), c.URL()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the old password still works")
	}
}

// A session that does not end does not block a change of access: the server is stopped with it, and follows the record
// when it is back.
func TestChangesBesideStuckSession(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), impatient)
	db, c := a.createDatabase(t, "shop")
	stick(t, c)
	list, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"10.0.0.0/8"})
	if err != nil || list.SessionsTerminated != 1 {
		t.Fatalf("allow-list: %+v, %v", list, err)
	}
	refused(t, c)
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	stick(t, c)
	rotation, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, true)
	if err != nil || rotation.SessionsTerminated != 1 {
		t.Fatalf("rotation: %+v, %v", rotation, err)
	}
	loginRefused(t, c)
	stick(t, rotation.Connection, "begin", "alter role app set work_mem = '8MB'")
	again, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false)
	if err != nil {
		t.Fatalf("rotation while the role is being changed: %v", err)
	}
	loginRefused(t, rotation.Connection)
	connect(t, again.Connection)
}

// Neither does a server without a free connection slot for the appliance.
func TestChangesOfFullServer(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), impatient)
	db, c := a.createDatabase(t, "shop")
	fill := func() {
		t.Helper()
		for {
			conn, err := a.connectSoon(t, db.ID)
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		}
	}
	fill()
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"10.0.0.0/8"}); err != nil {
		t.Fatalf("allow-list: %v", err)
	}
	refused(t, c)
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	fill()
	rotation, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, true)
	if err != nil {
		t.Fatalf("rotation: %v", err)
	}
	loginRefused(t, c)
	connect(t, rotation.Connection)
}

// connectSoon opens one of the appliance's sessions, if a slot is free.
func (a *appliance) connectSoon(t *testing.T, instance string) (conn *pgx.Conn, err error) {
	t.Helper()
	testenv.Eventually(t, "an answer to a login", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		conn, err = a.Databases.Instances.Connect(ctx, instance, databases.Maintenance)
		return err == nil || postgres.IsFull(err)
	})
	return conn, err
}

// A session that does not end delays a restart or a change of settings no longer than a stop may take.
func TestRestartBesideStuckSession(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), impatient)
	db, c := a.createDatabase(t, "shop")
	stick(t, c)
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
		t.Fatalf("restart: %v", err)
	}
	stick(t, c)
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": "33MB"}); err != nil {
		t.Fatalf("settings: %v", err)
	}
	if now := answer[string](t, c, "show work_mem"); now != "33MB" {
		t.Errorf("work_mem is %s", now)
	}
}

// Nor does it block the start of its database.
func TestStartBesideStuckSession(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)))
	db, c := a.createDatabase(t, "shop")
	stick(t, c, "begin", "alter role app set work_mem = '8MB'")
	a.abandon(t)
	b := startEngineOn(t, a.cfg, impatient)
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	connect(t, c)
	if _, receives := b.Recovery.WALStatus(db.ID); !receives {
		t.Error("its WAL is not received")
	}
}

// If the roles of a database could not be set at the start, its WAL is received anyway, and the roles are retried. So
// is the end of a change that a crash interrupted.
func TestLateRoles(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)))
	db, c := a.createDatabase(t, "shop")
	a.beginChange(t, model.ActionDatabaseRotatePassword, db.ID, func(d *model.Database) {
		a.sealPasswords(d, model.NewSecret("the owner's new one"), model.NewSecret("the reader's new one"))
		d.PendingChange.Terminate = true
	})
	session := connect(t, c)
	// A predefined role already has the read-only role's new name.
	a.edit(t, db.ID, func(d *model.Database) { d.ReadOnly = "pg_monitor" })
	a.abandon(t)
	b := a.reopen(t)
	if status, reason := b.status(t, db.ID); status != model.DatabaseUnavailable {
		t.Errorf("without its roles: %s %s", status, reason)
	}
	if _, receives := b.Recovery.WALStatus(db.ID); !receives {
		t.Error("its WAL is not received")
	}
	if now, err := b.Databases.Record(db.ID); err != nil || now.PendingChange == nil {
		t.Errorf("the rotation is recorded as done: %v", err)
	}
	b.edit(t, db.ID, func(d *model.Database) { d.ReadOnly = db.ReadOnly })
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Error(err)
	}
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	b.checkEnded(t, db.ID, model.ActionDatabaseRotatePassword, model.OutcomeSuccess)
	if err := session.Ping(t.Context()); err == nil {
		t.Error("the session goes on")
	}
	loginRefused(t, c)
}
