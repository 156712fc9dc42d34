package engine

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// A client that streams changes keeps a database awake. A replication slot alone does not: nothing happens that it would
// show. Its client wakes the database, and misses nothing.
func TestSleepReplication(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t (n int primary key)")
	if err := a.update(t, db.ID, databases.Change{LogicalReplication: new(true)}); err != nil {
		t.Fatal(err)
	}
	a.letSleep(t, db.ID, 10*time.Second)
	stream := func() *pgconn.PgConn {
		t.Helper()
		config, err := pgconn.ParseConfig(a.replication(t, db.ID).Connection.URL())
		if err != nil {
			t.Fatal(err)
		}
		config.RuntimeParams["replication"] = "database"
		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	execute := func(conn *pgconn.PgConn, command string) (rows int) {
		t.Helper()
		results, err := conn.Exec(t.Context(), command).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return len(results[len(results)-1].Rows)
	}
	first := stream()
	execute(first, "CREATE_REPLICATION_SLOT follower LOGICAL test_decoding")
	asleep := a.sleepsWithin(t, db.ID, 2*time.Second)
	if asleep {
		t.Error("it fell asleep with a client that streams")
	}
	run(t, c, "insert into t values (1)")
	if err := first.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	a.sleepSoon(t, db.ID)
	again := stream()
	defer again.Close(context.WithoutCancel(t.Context()))
	if rows := execute(again, "select * from pg_logical_slot_get_changes('follower', null, null) where data like '%INSERT%'"); rows != 1 {
		t.Errorf("%d changes after it slept, want that of before", rows)
	}
}

// sleepsWithin reports whether a database that may sleep at once does so within a time in which the appliance looks more
// than once.
func (a *appliance) sleepsWithin(t *testing.T, id string, limit time.Duration) bool {
	t.Helper()
	a.edit(t, id, func(d *model.Database) { d.SleepAfter = time.Millisecond })
	for began := time.Now(); time.Since(began) < limit; time.Sleep(50 * time.Millisecond) {
		if a.Databases.IsAsleep(id) {
			return true
		}
	}
	return false
}
