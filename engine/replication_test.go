package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

func (a *appliance) replication(t *testing.T, id string) databases.Replication {
	t.Helper()
	r, err := a.Databases.Replication(t.Context(), a.call(model.ActionReplicationGet), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Another PostgreSQL and pg_recvlogical follow a database of each major version. The allow-list and the switch hold for them.
func TestLogicalReplication(t *testing.T) {
	t.Parallel()
	bins := []binaries.Set{postgrestest.Binaries(t)}
	for _, major := range []int{16, 17, 18} {
		if major != bins[0].Major {
			bins = append(bins, postgrestest.Major(t, major))
		}
	}
	for _, bin := range bins {
		t.Run(bin.Version, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, newDataDir(t))
			cfg.Search = binaries.Search{NoFetch: true, Installed: func() []string { return []string{bin.Dir} }}
			testLogicalReplication(t, startEngineOn(t, cfg))
		})
	}
}

func testLogicalReplication(t *testing.T, a *appliance) {
	t.Helper()
	db, c := a.createDatabase(t, "shop")
	if r := a.replication(t, db.ID); r.Enabled || r.Connection != nil || len(r.Slots) != 0 {
		t.Errorf("at first: %+v", r)
	}
	switchTo := func(on, drop bool) error {
		return a.update(t, db.ID, databases.Change{LogicalReplication: &on, DropSlots: drop})
	}
	if err := switchTo(true, true); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("on, with slots dropped: %v", err)
	}
	if err := a.update(t, db.ID, databases.Change{LogicalReplication: new(true), ConnectionLimit: new(5)}); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("together with something else: %v", err)
	}
	if err := switchTo(true, false); err != nil {
		t.Fatal(err)
	}
	run(t, c, "create table kept (n int primary key, text text); insert into kept select g, 'before' from generate_series(1, 100) g; create publication p for table kept; create table loose (n int); create publication q for table loose")
	r := a.replication(t, db.ID)
	if !r.Enabled || r.Connection == nil || r.Retain < 4<<30 || len(r.Publications) != 2 || len(r.Publications[1].Unidentified) != 1 {
		t.Fatalf("on: %+v", r)
	}
	reader := a.call(model.ActionReplicationGet)
	reader.Key.Scopes = []model.Scope{model.ScopeDatabaseRead}
	if r, err := a.Databases.Replication(t.Context(), reader, db.ID); err != nil || !r.Enabled || r.Connection != nil {
		t.Errorf("for a reader: %+v, %v", r, err)
	}

	other := postgrestest.NewForeignCluster(t, a.Databases.Binaries, 16<<20)
	there := other.Connect()
	for _, sql := range []string{
		"create table kept (n int primary key, text text)",
		fmt.Sprintf("create subscription follower connection '%s' publication p", strings.ReplaceAll(r.Connection.Conninfo(), "'", "''")),
	} {
		if _, err := there.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run(t, c, "insert into kept select g, 'after' from generate_series(101, 150) g; update kept set text = 'changed' where n = 1; delete from kept where n = 2")
	testenv.Eventually(t, "the copy and the changes", func() bool {
		var n, changed int
		if err := there.QueryRow(t.Context(), "select count(*), count(*) filter (where text = 'changed') from kept").Scan(&n, &changed); err != nil {
			t.Fatal(err)
		}
		return n == 149 && changed == 1
	})
	out := t.TempDir() + "/out"
	recv := postgrestest.Tool(a.Databases.Binaries, "pg_recvlogical", "-d", r.Connection.URL(), "--slot", "tool", "--create-slot", "--start", "-P", "test_decoding", "-f", out, "--no-loop")
	if _, err := os.Stat(recv.Path); err != nil {
		t.Logf("pg_recvlogical is not tested: %v", err)
	} else {
		if err := recv.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = recv.Wait(); close(ended) }()
		testenv.Eventually(t, "the slot of the tool", func() bool {
			return slices.ContainsFunc(a.replication(t, db.ID).Slots, func(s postgres.Slot) bool { return s.Name == "tool" && s.Active })
		})
		run(t, c, "insert into kept values (1000, 'for the tool')")
		testenv.Eventually(t, "what the tool has read", func() bool {
			text, _ := os.ReadFile(out)
			return strings.Contains(string(text), "for the tool")
		})
		// The allow-list ends it, and keeps it away.
		if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"192.0.2.1/32"}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("a client that streams survives the allow-list")
			_ = recv.Process.Kill()
			<-ended
		}
		for _, s := range a.replication(t, db.ID).Slots {
			if s.Active {
				t.Errorf("%s is read by a client that is not allowed", s.Name)
			}
		}
		if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1/32"}); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, "the follower's return", func() bool {
			var n int
			return there.QueryRow(t.Context(), "select count(*) from kept where n = 1000").Scan(&n) == nil && n == 1
		})
	}

	// The appliance is replaced; the server goes on with its slots.
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	run(t, c, "insert into kept values (1001, 'after the restart')")
	testenv.Eventually(t, "changes after the restart", func() bool {
		var n int
		return there.QueryRow(t.Context(), "select count(*) from kept where n = 1001").Scan(&n) == nil && n == 1
	})
	if err := switchTo(false, false); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "follower") {
		t.Errorf("off with slots: %v", err)
	}
	drop := func(slot string, force bool) error {
		return a.Databases.ReplicationSlotDrop(t.Context(), a.call(model.ActionReplicationSlotDrop), db.ID, slot, force)
	}
	if err := drop("none", true); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("no such slot: %v", err)
	}
	if err := drop(databases.WALSlot, true); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the archive's slot: %v", err)
	}
	testenv.Eventually(t, "the follower", func() bool {
		return slices.ContainsFunc(a.replication(t, db.ID).Slots, func(s postgres.Slot) bool { return s.Name == "follower" && s.Active })
	})
	if err := drop("follower", false); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a slot in use: %v", err)
	}
	connection := a.replication(t, db.ID).Connection
	if err := switchTo(false, true); err != nil {
		t.Fatal(err)
	}
	if level := answer[string](t, c, "show wal_level"); level != "replica" {
		t.Errorf("off: wal_level is %s", level)
	}
	if r := a.replication(t, db.ID); r.Enabled || len(r.Slots) != 0 || r.Connection != nil {
		t.Errorf("off: %+v", r)
	}
	refused(t, *connection)
	if _, err := there.Exec(t.Context(), "alter subscription follower disable; alter subscription follower set (slot_name = none)"); err != nil {
		t.Fatal(err)
	}
	if _, err := there.Exec(t.Context(), "drop subscription follower"); err != nil {
		t.Fatal(err)
	}
}

// A switch with which the server does not start is taken back as a whole, at the latest when the server starts again. The
// loss of the slots that were dropped for it is reported.
func TestReplicationSwitchFails(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	version := filepath.Join(a.Databases.DataDirectory(db.ID, 1), "PG_VERSION")
	fail := func(change databases.Change) {
		t.Helper()
		if err := os.Rename(version, version+".away"); err != nil { // only a start reads it
			t.Fatal(err)
		}
		if err := a.update(t, db.ID, change); err == nil {
			t.Error("it was switched without a start")
		}
		if err := os.Rename(version+".away", version); err != nil {
			t.Fatal(err)
		}
		testenv.Within(t, time.Minute, "the database", func() bool {
			if err := a.sweepOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			status, _ := a.status(t, db.ID)
			return status == model.DatabaseAvailable
		})
		if pending := a.record(t, db.ID).PendingChange; pending != nil {
			t.Errorf("a change is pending: %+v", pending)
		}
	}
	fail(databases.Change{LogicalReplication: new(true)})
	if r := a.replication(t, db.ID); r.Enabled || answer[string](t, c, "show wal_level") != "replica" {
		t.Errorf("after a failed switch: %+v", r)
	}
	if err := a.update(t, db.ID, databases.Change{LogicalReplication: new(true)}); err != nil {
		t.Fatal(err)
	}
	a.asSuperuser(t, db.ID, "select pg_create_logical_replication_slot('s', 'pgoutput')")
	connection := a.replication(t, db.ID).Connection
	fail(databases.Change{LogicalReplication: new(false), DropSlots: true})
	if r := a.replication(t, db.ID); !r.Enabled || len(r.Slots) != 0 || answer[string](t, c, "show wal_level") != "logical" {
		t.Errorf("after a failed switch: %+v", r)
	}
	connect(t, *connection)
	if lost := a.awaitAudit(t, model.ActionSlotDropped, db.ID); lost.Details["slot"] != "s" {
		t.Errorf("%+v", lost)
	}
}

// streaming returns a client that streams the publication p from a new slot.
func streaming(t *testing.T, c databases.Connection, slot string) *pgconn.PgConn {
	t.Helper()
	cfg, err := pgconn.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "CREATE_REPLICATION_SLOT "+slot+" LOGICAL pgoutput NOEXPORT_SNAPSHOT").ReadAll(); err != nil {
		t.Fatal(err)
	}
	conn.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION SLOT " + slot + " LOGICAL 0/0 (proto_version '1', publication_names 'p')"})
	if err := conn.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	if message, err := conn.ReceiveMessage(t.Context()); err != nil {
		t.Fatal(err)
	} else if _, ok := message.(*pgproto3.CopyBothResponse); !ok {
		t.Fatalf("%#v", message)
	}
	return conn
}

// The appliance dies while it switches replication off, before it has ended the client that streams. The next one ends it.
func TestStreamAfterACrash(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), func(e *Engine) { e.Databases.Timeouts.Sessions = time.Minute })
	view, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop", LogicalReplication: true})
	if err != nil {
		t.Fatal(err)
	}
	id := view.ID
	run(t, c, "create table kept (n int); create publication p for table kept")
	stream := streaming(t, *a.replication(t, id).Connection, "s")
	lock, err := a.Databases.Instances.Connect(t.Context(), id, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close(context.WithoutCancel(t.Context()))
	if _, err := lock.Exec(t.Context(), "begin; lock table pg_shdescription"); err != nil { // the switch waits for it, to close the role
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := a.Databases.Update(t.Context(), a.call(model.ActionDatabaseUpdate), id, databases.Change{LogicalReplication: new(false), DropSlots: true})
		ended <- err
	}()
	testenv.Eventually(t, "the wait for the lock", func() (waits bool) {
		if err := lock.QueryRow(t.Context(), "select exists (select from pg_locks where not granted)").Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits
	})
	a.abandon(t)
	if _, err := lock.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Fatal("the switch ended in an appliance that is dead")
	}
	a = a.reopen(t)
	a.awaitStatus(t, id, model.DatabaseAvailable, 30*time.Second)
	a.checkEnded(t, id, model.ActionDatabaseUpdate, model.OutcomeSuccess)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for err == nil {
		_, err = stream.ReceiveMessage(ctx)
	}
	if ctx.Err() != nil {
		t.Fatal("the client streams on")
	}
	testenv.Eventually(t, "the end of the slot", func() bool {
		a.Databases.SampleOne(t.Context(), a.record(t, id))
		return len(a.replication(t, id).Slots) == 0
	})
}

// The appliance dies while it switches replication off, with slots left. The server starts nevertheless, nobody can
// read them, and they are dropped. A restore leaves slots behind.
func TestReplicationAfterACrash(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	view, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop", LogicalReplication: true})
	if err != nil {
		t.Fatal(err)
	}
	id := view.ID
	run(t, c, "create table kept as select 1 as n")
	slot := func(name string) {
		a.asSuperuser(t, id, "select pg_create_logical_replication_slot('"+name+"', 'pgoutput')")
	}
	slot("one")
	b := a.backUp(t, id)
	a.restore(t, id, b.ID)
	if r := a.replication(t, id); !r.Enabled || len(r.Slots) != 0 || answer[string](t, c, "show wal_level") != "logical" {
		t.Errorf("after a restore: %+v", r)
	}
	slot("two")
	a.beginChange(t, model.ActionDatabaseUpdate, id, func(d *model.Database) { d.LogicalReplication, d.ReplicationPassword = false, nil })
	a.abandon(t)
	a = a.reopen(t)
	a.awaitStatus(t, id, model.DatabaseAvailable, 30*time.Second)
	testenv.Eventually(t, "the end of the change", func() bool {
		record, err := a.Databases.Record(id)
		return err == nil && record.PendingChange == nil
	})
	testenv.Eventually(t, "the end of the slot", func() bool {
		record, err := a.Databases.Record(id)
		if err != nil {
			t.Fatal(err)
		}
		a.Databases.SampleOne(t.Context(), record)
		return len(a.replication(t, id).Slots) == 0
	})
	a.awaitAudit(t, model.ActionSlotDropped, id)
	if err := a.Close(t.Context()); err != nil { // the next start needs no wal_level=logical
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitStatus(t, id, model.DatabaseAvailable, 30*time.Second)
	if level := answer[string](t, c, "show wal_level"); level != "replica" {
		t.Errorf("wal_level is %s", level)
	}
}
