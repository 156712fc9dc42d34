package engine

import (
	"bytes"
	"context"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// createDatabase creates a database and returns it with its owner's connection.
func (a *appliance) createDatabase(t testing.TB, name string) (databases.View, databases.Connection) {
	t.Helper()
	db, connection, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: name})
	if err != nil {
		t.Fatalf("create database: %v", err)
	}
	return db, connection
}

// connect opens a session that is closed at the end of the test.
func connect(t testing.TB, c databases.Connection) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestDatabaseCreate(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, connection := a.createDatabase(t, "shop")
	if db.Status != model.DatabaseAvailable || db.Port == 0 {
		t.Errorf("created: %+v", db)
	}
	conn := connect(t, connection)
	var user, database string
	if err := conn.QueryRow(t.Context(), "select current_user, current_database()").Scan(&user, &database); err != nil {
		t.Fatal(err)
	}
	if user != "app" || database != "shop" {
		t.Errorf("connected as %s to %s", user, database)
	}
	if _, err := conn.Exec(t.Context(), "create table t (n int); insert into t values (1)"); err != nil {
		t.Errorf("the owner cannot write: %v", err)
	}
}

func TestDatabaseCreateRefusesATakenName(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	a.createDatabase(t, "shop")
	_, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop"})
	if model.CodeOf(err) != model.CodeConflict {
		t.Errorf("second create: %v", err)
	}
}

// A database that is ready but cannot be recorded as such is removed: no unreported server keeps running, and the name
// is free.
func TestDatabaseCreateThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	var broken atomic.Bool
	cfg.Clock = func() time.Time {
		if broken.Load() && bytes.Contains(debug.Stack(), []byte("publishDatabase")) {
			return time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) // no record can hold that year
		}
		return time.Now()
	}
	a := startEngineOn(t, cfg)
	broken.Store(true)
	if db, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop"}); err == nil {
		t.Fatalf("it was recorded: %+v", db)
	}
	a.checkTidy(t)
	broken.Store(false)
	a.createDatabase(t, "shop")
}
