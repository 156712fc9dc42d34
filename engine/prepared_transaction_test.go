package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// TestPreparedTransactions has the owner use two-phase commits, and forget one.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	set := func(value string) {
		t.Helper()
		if err := a.changeSettings(t, a.db.ID, true, "max_prepared_transactions="+value); err != nil {
			t.Fatal(err)
		}
		a.owner = connect(t, a.connection(t))
	}
	set("5")
	a.gone("prepared_transaction")
	a.sql("create table accounts (n int)")
	prepare := func(gid string) {
		t.Helper()
		for _, sql := range []string{"begin", "insert into accounts values (1)", "prepare transaction " + gid} {
			if _, err := a.owner.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	prepare("'it''s forgotten'")
	r := a.one("prepared_transaction")
	if r.Evidence["gid"] != "it's forgotten" {
		t.Errorf("%+v", r)
	}
	a.sql(r.SQL)
	a.gone("prepared_transaction")

	prepare("'kept'")
	set("0") // it has its place until it is ended
	a.one("prepared_transaction")
	a.sql("commit prepared 'kept'")
	set("0")
	if n := answer[int](t, a.connection(t), "select count(*) from accounts"); n != 1 {
		t.Errorf("%d rows", n)
	}
	if value := answer[string](t, a.connection(t), "show max_prepared_transactions"); value != "0" {
		t.Errorf("max_prepared_transactions is %s", value)
	}
}

// TestPointAmongPreparedTransactions: a restore has exactly the prepared transactions of its target, whatever was committed
// around it.
func TestPointAmongPreparedTransactions(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
		t.Fatal(err)
	}
	run(t, c, "create table steps (n int)")
	a.backUp(t, db.ID)
	var at []time.Time
	for _, step := range [][]string{
		{"insert into steps values (1)"},
		{"begin", "insert into steps values (10)", "prepare transaction 'first'"},
		{"begin", "insert into steps values (20)", "prepare transaction 'second'"},
		{"rollback prepared 'first'"},
		{"commit prepared 'second'"},
		{"insert into steps values (2)"},
	} {
		conn := connect(t, c)
		for _, sql := range step {
			if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		at = append(at, answer[time.Time](t, c, "select clock_timestamp()"))
		time.Sleep(5 * time.Millisecond) // so that the next step has a later time, in microseconds
	}
	a.awaitArchived(t, db.ID, at[len(at)-1])
	const state = "select concat_ws(' ', (select string_agg(n::text, ' ' order by n) from steps), (select string_agg(gid, ' ' order by gid) from pg_prepared_xacts))"
	for n, want := range []string{"1", "1 first", "1 first second", "1 second", "1 20", "1 2 20"} {
		a.goTo(t, db.ID, recovery.RestorePoint{Time: at[n]})
		if got := answer[string](t, c, state); got != want {
			t.Errorf("after step %d: %q, not %q", n+1, got, want)
		}
	}
}

// TestUndoAfterRename: an undo does not roll back what was prepared in the data that it brings back under an earlier name.
func TestUndoAfterRename(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
		t.Fatal(err)
	}
	run(t, c, "create table steps (n int)")
	b := a.backUp(t, db.ID)
	conn := connect(t, c)
	for _, sql := range []string{"begin", "insert into steps values (10)", "prepare transaction 'acknowledged'"} {
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	a.restore(t, db.ID, b.ID)
	a.awaitIdle(t)
	rename := func(name string) {
		t.Helper()
		if err := a.update(t, db.ID, databases.Change{Name: new(name)}); err != nil {
			t.Fatal(err)
		}
	}
	rename("shop2")
	op, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if failed := a.awaitOperation(t, op, model.OperationFailed); !strings.Contains(failed, "named shop ") || !strings.Contains(failed, "acknowledged") {
		t.Errorf("the undo ended with %q", failed)
	}
	rename("shop")
	a.undo(t, db.ID)
	if got := answer[string](t, a.connectionOf(t, db.ID), "select coalesce(string_agg(gid, ' '), 'none') from pg_prepared_xacts"); got != "acknowledged" {
		t.Errorf("prepared after the undo: %s", got)
	}
}

// TestRenameBesidePreparedTransactions: a rename that prepared transactions prevent is refused with their names, and ends no
// session.
func TestRenameBesidePreparedTransactions(t *testing.T) {
	t.Parallel()
	a, db, owner, c := startWithTests(t)
	if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
		t.Fatal(err)
	}
	for gid, at := range map[string]databases.Connection{"the owner's": owner, "the tests'": beside(c, "tests")} {
		session := connect(t, at)
		for _, sql := range []string{"begin", "create table held (n int)", "prepare transaction " + quoted(gid)} {
			if _, err := session.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		err := a.update(t, db.ID, databases.Change{Name: new("tests")})
		if message := model.PublicMessage(err); model.CodeOf(err) != model.CodeConflict || !strings.Contains(message, quoted(gid)+" in the database "+at.Database) {
			t.Errorf("renamed beside %s: %v", gid, err)
		}
		for _, sql := range []string{"select n from kept", "rollback prepared " + quoted(gid)} {
			if _, err := session.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Errorf("%s after the refusal: %v", sql, err)
			}
		}
	}
	wantTests(t, owner)
	wantTests(t, beside(c, "tests"))
	if err := a.update(t, db.ID, databases.Change{Name: new("tests")}); err != nil {
		t.Error(err)
	}
}

// TestInterruptedRenameBesidePreparedTransactions: a rename that a crash interrupted is taken back, by the start or the sweep,
// if clients have prepared a transaction since: they could end it nowhere.
func TestInterruptedRenameBesidePreparedTransactions(t *testing.T) {
	t.Parallel()
	for name, carryOn := range map[string]func(*testing.T, *appliance) *appliance{
		"start": func(t *testing.T, a *appliance) *appliance { a.abandon(t); return a.reopen(t) },
		"sweep": func(t *testing.T, a *appliance) *appliance {
			if err := a.sweepOnce(t.Context()); err != nil {
				t.Error(err)
			}
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngineOn(t, testConfig(t, newDataDir(t)))
			db, c := a.createDatabase(t, "shop")
			if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
				t.Fatal(err)
			}
			a.beginChange(t, model.ActionDatabaseUpdate, db.ID, func(d *model.Database) {
				d.PendingChange.Before = &model.Database{Name: d.Name, Project: d.Project}
				d.Name, d.ConnectionLimit = "store", 3
			})
			if _, err := connect(t, c).PgConn().Exec(t.Context(), "begin; create table held (n int); prepare transaction 'held'").ReadAll(); err != nil {
				t.Fatal(err)
			}
			a = carryOn(t, a)
			a.checkEnded(t, db.ID, model.ActionDatabaseUpdate, model.OutcomeError)
			if now := a.record(t, db.ID); now.Name != "shop" || now.ConnectionLimit != 0 {
				t.Errorf("it is %q with the limit %d", now.Name, now.ConnectionLimit)
			}
			a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
			run(t, c, "commit prepared 'held'")
			if err := a.update(t, db.ID, databases.Change{Name: new("store")}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRenameTakenBackReceivesWAL: the take-back of a resumed rename leaves nothing undone that failed beside it.
func TestRenameTakenBackReceivesWAL(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
		t.Fatal(err)
	}
	a.beginChange(t, model.ActionDatabaseUpdate, db.ID, func(d *model.Database) {
		d.PendingChange.Before = &model.Database{Name: d.Name, Project: d.Project}
		d.Name = "store"
	})
	if _, err := connect(t, c).PgConn().Exec(t.Context(), "begin; create table held (n int); prepare transaction 'held'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	archive, err := a.Recovery.WALArchive(db.ID)
	if err == nil {
		err = a.Recovery.StopReceiving(db.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	inTheWay, err := archive.Writer(a.record(t, db.ID).Generation)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.sweepOnce(t.Context())
	if status, _ := a.status(t, db.ID); status == model.DatabaseAvailable {
		t.Error("it is available although its WAL is not received")
	}
	if err := inTheWay.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Error(err)
	}
	a.checkEnded(t, db.ID, model.ActionDatabaseUpdate, model.OutcomeError)
	if now := a.record(t, db.ID); now.Name != "shop" {
		t.Errorf("it is %q", now.Name)
	}
	a.awaitArchived(t, db.ID, answer[time.Time](t, c, "select clock_timestamp()"))
}

// TestTakenBackRenameBesidePreparedTransactions: a rename that was taken back is not taken back, and audited, by each sweep
// that finds the server still unable to follow.
func TestTakenBackRenameBesidePreparedTransactions(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "store")
	if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=5"); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, c).PgConn().Exec(t.Context(), "begin; create table held (n int); prepare transaction 'held'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	a.beginChange(t, model.ActionDatabaseUpdate, db.ID, func(d *model.Database) { // it took the server from shop to store
		d.Name, d.PendingChange.TakenBack = "shop", true
		d.PendingChange.Before = &model.Database{Name: d.Name, Project: d.Project}
	})
	for range 2 {
		if err := a.sweepOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "held") {
			t.Errorf("a sweep: %v", err)
		}
	}
	if n := a.audited(t, model.ActionDatabaseUpdate); n != 0 {
		t.Errorf("entries of the update: %d", n)
	}
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
