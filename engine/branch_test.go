package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// cloning makes an engine clone whatever the file system: without shared blocks, a clone is a copy.
func cloning(e *Engine) { e.Recovery.CanClone = func(string) bool { return true } }

// neverCloning makes an engine restore.
func neverCloning(e *Engine) { e.Recovery.CanClone = func(string) bool { return false } }

// branch makes a branch and waits for it.
func (a *appliance) branch(t *testing.T, parent string, in recovery.NewBranch) (recovery.Branch, databases.Connection) {
	t.Helper()
	made, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), parent, in)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, made.Started, model.OperationCompleted)
	return made, a.connectionOf(t, made.ID)
}

func (a *appliance) connectionOf(t *testing.T, id string) databases.Connection {
	t.Helper()
	record, err := a.Databases.Record(id)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Databases.ConnectionOf(record, true)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestBranchUnderLoad: a branch of now has what was acknowledged before the request, without holes, and nothing of what
// was begun after the branch was there. So has a branch of the branch.
func TestBranchUnderLoad(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]func(*Engine){"clone": cloning, "restore": neverCloning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngineOn(t, testConfig(t, newDataDir(t)), method)
			db, c := a.createDatabase(t, "shop")
			run(t, c, "create table t (n int primary key)")
			run(t, c, "create unlogged table u as select generate_series(1, 1000) n")
			a.backUp(t, db.ID)
			var acknowledged atomic.Int64
			var writing sync.WaitGroup
			stop := make(chan struct{})
			writer := connect(t, c)
			writing.Go(func() {
				for n := 1; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := writer.Exec(t.Context(), "insert into t values ($1)", n); err != nil {
						t.Error(err)
						return
					}
					acknowledged.Store(int64(n))
				}
			})
			testenv.Eventually(t, "a hundred rows", func() bool { return acknowledged.Load() > 100 })
			before := acknowledged.Load()
			made, branched := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
			after := acknowledged.Load() + 1 // one may be under way
			close(stop)
			writing.Wait()

			most, count := answer[int64](t, branched, "select max(n) from t"), answer[int64](t, branched, "select count(*) from t")
			if most < before || most > after || count != most {
				t.Errorf("%d rows up to %d, with %d acknowledged before and at most %d written meanwhile", count, most, before, after)
			}
			if n := answer[int](t, branched, "select count(*) from u"); n != 0 {
				t.Errorf("%d rows of an unlogged table", n)
			}
			if string(made.Method) != name || (made.Reason == "") != (name == "clone") {
				t.Errorf("made by %s because %q", made.Method, made.Reason)
			}
			if branched.Password.Reveal() == c.Password.Reveal() {
				t.Error("the branch has the password of its parent")
			}
			record, err := a.Databases.Record(made.ID)
			if err != nil || record.Parent != db.ID || record.BranchedAt == nil || record.BranchedAt.Before(made.Started.StartedAt.Add(-time.Minute)) {
				t.Errorf("the record: %+v, %v", record, err)
			}
			run(t, branched, "delete from t where n > 5")
			if got := answer[int64](t, c, "select count(*) from t"); got < after-1 {
				t.Errorf("the parent has %d rows", got)
			}
			a.awaitIdle(t)
			a.backUp(t, made.ID)
			a.mustHaveNoGap(t, made.ID)
			_, again := a.branch(t, made.ID, recovery.NewBranch{Name: "of_the_branch"})
			if n := answer[int](t, again, "select count(*) from t"); n != 5 {
				t.Errorf("the branch of the branch has %d rows", n)
			}
			a.awaitIdle(t)
			a.checkTidy(t)
		})
	}
}

// TestBranchOfThePast: a branch begins at any moment that the backups reach, or at one whose data a restore replaced and
// kept, which is cloned.
func TestBranchOfThePast(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int primary key)")
	b := a.backUp(t, db.ID)
	first := commitStep(t, c, 1)
	last := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, last)
	made, early := a.branch(t, db.ID, recovery.NewBranch{Name: "early", At: first})
	if got := steps(t, early); got != "1" || made.Method != recovery.BranchRestore {
		t.Errorf("by %s: %s", made.Method, got)
	}
	if record, err := a.Databases.Record(made.ID); err != nil || !record.BranchedAt.Equal(first) {
		t.Errorf("%v, %v", record.BranchedAt, err)
	}
	_, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: "never", At: first.Add(-time.Hour)})
	if model.CodeOf(err) != model.CodeValidation || !strings.HasPrefix(model.PublicMessage(err), "at: ") || !strings.Contains(model.PublicMessage(err), "which is from") {
		t.Errorf("before the window: %v", err)
	}
	a.awaitIdle(t)
	a.restore(t, db.ID, b.ID)
	a.awaitIdle(t)
	made, kept := a.branch(t, db.ID, recovery.NewBranch{Name: "kept", At: last})
	if got := steps(t, kept); got != "1 2" || made.Method != recovery.BranchClone {
		t.Errorf("of the data that was kept, by %s: %s", made.Method, got)
	}
	a.awaitIdle(t)
	a.backUp(t, made.ID)
	made, early = a.branch(t, db.ID, recovery.NewBranch{Name: "early_again", At: first})
	if got := steps(t, early); got != "1" || made.Method != recovery.BranchRestore {
		t.Errorf("by %s: %s", made.Method, got)
	}
	a.awaitIdle(t)
	a.checkTidy(t)
}

// TestBranchReset: a reset replaces the data, keeps URL and passwords, and can be undone.
func TestBranchReset(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]func(*Engine){"clone": cloning, "restore": neverCloning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngineOn(t, testConfig(t, newDataDir(t)), method)
			db, c := a.createDatabase(t, "shop")
			run(t, c, "create table steps (n int primary key)")
			run(t, c, "insert into steps values (1)")
			a.backUp(t, db.ID)
			made, branched := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
			run(t, branched, "insert into steps values (7)")
			at := commitStep(t, c, 2)
			born := *a.record(t, made.ID).BranchedAt
			reset, err := a.Recovery.BranchReset(t.Context(), a.call(model.ActionBranchReset), made.ID, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			a.awaitOperation(t, reset.Started, model.OperationCompleted)
			if got := steps(t, branched); got != "1 2" {
				t.Errorf("after the reset: %s", got)
			}
			if got := *a.record(t, made.ID).BranchedAt; got.Before(at) {
				t.Errorf("as of %v, reset after %v", got, at)
			}
			a.awaitIdle(t)
			a.undo(t, made.ID)
			if got := steps(t, branched); got != "1 7" {
				t.Errorf("after the undo: %s", got)
			}
			if got := *a.record(t, made.ID).BranchedAt; !got.Equal(born) {
				t.Errorf("as of %v, not %v", got, born)
			}
			a.awaitIdle(t)
			a.backUp(t, made.ID)
			a.mustHaveNoGap(t, made.ID)
			if _, err := a.Recovery.BranchReset(t.Context(), a.call(model.ActionBranchReset), db.ID, time.Time{}); model.CodeOf(err) != model.CodeConflict {
				t.Errorf("reset of a database that is no branch: %v", err)
			}
			a.awaitIdle(t)
			a.checkTidy(t)
		})
	}
}

func (a *appliance) record(t *testing.T, id string) model.Database {
	t.Helper()
	db, err := a.Databases.Record(id)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestBranchSurvivesKills: an appliance that dies while it makes or resets a branch leaves nothing half made.
func TestBranchSurvivesKills(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int primary key)")
	a.backUp(t, db.ID)
	made, branched := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
	run(t, branched, "insert into steps values (7)")
	for n, phase := range []string{"cloning", "recovering", model.PhaseSwitching} {
		call := a.call(model.ActionBranchReset)
		step := func() (recovery.Branch, error) {
			return a.Recovery.BranchReset(t.Context(), call, made.ID, time.Time{})
		}
		if n < 2 {
			call = a.call(model.ActionBranchCreate)
			step = func() (recovery.Branch, error) {
				return a.Recovery.BranchCreate(t.Context(), call, db.ID, recovery.NewBranch{Name: fmt.Sprint("half", n)})
			}
		}
		begun, err := step()
		if err != nil {
			t.Fatal(phase, err)
		}
		testenv.Catch(t, time.Minute, "the phase "+phase, func() bool {
			op, err := a.Databases.OperationGet(a.call(model.ActionOperationGet), begun.Started.ID)
			return err == nil && (op.Phase == phase || op.Status.Final())
		})
		a.abandon(t)
		a = a.reopen(t)
		cloning(a.Engine)
		if n < 2 {
			if _, err := a.Databases.Record(begun.ID); err == nil {
				if got, reason := a.status(t, begun.ID); got != model.DatabaseAvailable {
					t.Errorf("killed while %s: half a branch is left, %s (%s)", phase, got, reason)
				}
			}
		} else {
			a.awaitStatus(t, made.ID, model.DatabaseAvailable, time.Minute)
			if got := steps(t, branched); got != "7" && got != "" {
				t.Errorf("killed while %s: %q", phase, got)
			}
		}
		a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
		a.awaitIdle(t)
		a.checkTidy(t)
	}
}

// TestBranchRefused has the requests that change nothing.
func TestBranchRefused(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, _ := a.createDatabase(t, "shop")
	create := func(parent, name string, expires time.Duration) error {
		_, err := a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), parent, recovery.NewBranch{Name: name, ExpiresIn: expires})
		return err
	}
	for _, c := range []struct {
		err  error
		code model.Code
	}{
		{create(db.ID, "1", 0), model.CodeValidation},
		{create(db.ID, "n", time.Second), model.CodeValidation},
		{create("db_none", "n", 0), model.CodeNotFound},
		{create(db.ID, "shop", 0), model.CodeConflict},
	} {
		if model.CodeOf(c.err) != c.code {
			t.Errorf("%v, not %s", c.err, c.code)
		}
	}
	a.edit(t, db.ID, func(d *model.Database) { d.Sandbox = true })
	if err := create(db.ID, "n", 0); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("of a sandbox: %v", err)
	}
	a.edit(t, db.ID, func(d *model.Database) { d.Sandbox = false })
	if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
		t.Fatal(err)
	}
	if err := create(db.ID, "n", 0); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("of a server that is down: %v", err)
	}
	if _, err := a.Recovery.BranchDiff(t.Context(), a.call(model.ActionBranchDiff), db.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("difference of a database that is no branch: %v", err)
	}
	a.awaitIdle(t)
}

// TestBranchAfterRestore: where a branch is restored from a backup, one of a database that was just restored waits for the
// backup that follows, which does not give way to it.
func TestBranchAfterRestore(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), neverCloning)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select 7 as n")
	a.restore(t, db.ID, a.backUp(t, db.ID).ID)
	var made recovery.Branch
	testenv.Catch(t, time.Minute, "a branch of the restored data", func() (ok bool) {
		var err error
		made, err = a.Recovery.BranchCreate(t.Context(), a.call(model.ActionBranchCreate), db.ID, recovery.NewBranch{Name: "try"})
		if err != nil && (model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "try again when it is")) {
			t.Fatal(err)
		}
		return err == nil
	})
	a.awaitOperation(t, made.Started, model.OperationCompleted)
	for _, b := range a.backups(t, db.ID) {
		if b.Cut {
			t.Errorf("a backup gave way: %s", b.Error)
		}
	}
	a.awaitIdle(t)
}

// TestBranchEnds: a database with branches stays; an expired branch goes to the trash, unless it was extended or the
// clock has leapt.
func TestBranchEnds(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t (n int)")
	made, branched := a.branch(t, db.ID, recovery.NewBranch{Name: "try", ExpiresIn: time.Hour})
	var err error
	a.keepsBackup(t, db.ID, func() { _, err = a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID) })
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "try") {
		t.Errorf("deletion of a parent: %v", err)
	}
	list, err := a.Databases.Branches(a.call(model.ActionBranchList), db.ID, core.Page{Limit: 10})
	if err != nil || len(list.Items) != 1 || list.Items[0].ID != made.ID {
		t.Errorf("the branches: %v, %v", list.Items, err)
	}
	run(t, branched, "alter table t add added text")
	found, err := a.Recovery.BranchDiff(t.Context(), a.call(model.ActionBranchDiff), made.ID)
	if err != nil || !strings.Contains(string(found.Unified), "\n+    added text") {
		t.Errorf("the difference: %s, %v", found.Unified, err)
	}
	run(t, branched, "alter table t drop added")
	if found, err = a.Recovery.BranchDiff(t.Context(), a.call(model.ActionBranchDiff), made.ID); err != nil || len(found.Unified) > 0 {
		t.Errorf("no difference: %s, %v", found.Unified, err)
	}
	for _, long := range []string{"repeat(chr(10), 500000)", "repeat('x', 9000000)"} {
		run(t, branched, "do $$ begin execute format('comment on table t is %L', "+long+"); end $$")
		if found, err = a.Recovery.BranchDiff(t.Context(), a.call(model.ActionBranchDiff), made.ID); model.CodeOf(err) != model.CodeForbidden || !strings.Contains(err.Error(), "400000 lines") {
			t.Errorf("the difference of a schema with %s: %d bytes, %v", long, len(found.Unified), err)
		}
	}
	expire := func(at *time.Time) error { return a.update(t, made.ID, databases.Change{ExpiresAt: &at}) }
	soon := a.Core.Clock().Add(2 * time.Hour)
	if err := expire(&soon); err != nil {
		t.Error(err)
	}
	past := a.Core.Clock().Add(-time.Second)
	if err := expire(&past); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("to the past: %v", err)
	}
	if at := &soon; model.CodeOf(a.update(t, db.ID, databases.Change{ExpiresAt: &at})) != model.CodeConflict {
		t.Error("a database that is no branch expires")
	}
	stale := a.record(t, made.ID)
	stale.ExpiresAt = &past // as a sweep has read it before it was extended
	a.keepsBackup(t, made.ID, func() {
		if removed, err := a.Databases.ExpireBranch(t.Context(), stale); err != nil || removed {
			t.Errorf("removed %v, %v", removed, err)
		}
	})
	if a.record(t, made.ID).Trash != nil {
		t.Error("a branch that was extended has expired")
	}
	a.edit(t, made.ID, func(d *model.Database) { d.ExpiresAt = &past })
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Error(err)
	}
	if a.record(t, made.ID).Trash == nil {
		t.Fatal("an expired branch stays")
	}
	back, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), made.ID)
	if err != nil || back.ExpiresAt != nil {
		t.Errorf("back from the trash: %v, %v", back.ExpiresAt, err)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), made.ID); err != nil {
		t.Error(err)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Errorf("deletion of a database whose branch is in the trash: %v", err)
	}
	if back, err = a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), made.ID); err != nil || back.Parent != db.ID {
		t.Errorf("a branch without its parent: %+v, %v", back, err)
	}
	if _, err := a.Recovery.BranchReset(t.Context(), a.call(model.ActionBranchReset), made.ID, time.Time{}); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("reset without a parent: %v", err)
	}
	a.awaitIdle(t)
	a.checkTidy(t)
}

// TestBranchHasPropertiesOfItsCreation: an allow-list that is set while the creation of a branch prepares is the branch's too.
func TestBranchHasPropertiesOfItsCreation(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), cloning)
	db, _ := a.createDatabase(t, "shop")
	a.Recovery.CanClone = func(string) bool { // asked once the parent's record was read
		if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"}); err != nil {
			t.Error(err)
		}
		return true
	}
	made, _ := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
	if got := a.record(t, made.ID).Allowlist; len(got) != 1 || got[0].String() != "127.0.0.1/32" {
		t.Errorf("the branch admits %v", got)
	}
}

// keepsBackup checks that a deletion that is refused cancels no backup.
func (a *appliance) keepsBackup(t *testing.T, id string, refused func()) {
	t.Helper()
	backup, ended := a.Core.Cancels.Add(t.Context(), databases.BackupClaim(id))
	running := context.AfterFunc(backup, ended)
	refused()
	if !running() {
		t.Error("a deletion that was refused cancelled a backup")
		return
	}
	ended()
}

// TestBranchKeepsSettings: a branch has what was set for its parent: PostgreSQL's settings, those that need a restart, the
// libraries of its extensions, and its schedule. A prepared transaction, which the copy cannot have, is in nobody's way.
func TestBranchKeepsSettings(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]func(*Engine){"clone": cloning, "restore": neverCloning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngineOn(t, testConfig(t, newDataDir(t)), method)
			db, c := a.createDatabase(t, "shop")
			if _, err := a.Databases.ExtensionSet(t.Context(), a.call(model.ActionExtensionSet), db.ID, databases.ExtensionChange{Name: "pg_stat_statements", Restart: true}); err != nil {
				t.Fatal(err)
			}
			if err := a.changeSettings(t, db.ID, true, "max_prepared_transactions=7", "statement_timeout=77s", "max_locks_per_transaction=256"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"max_connections": "33"}); err != nil {
				t.Fatal(err)
			}
			limit, window := 9, model.MaintenanceWindow{Day: "sunday", Start: 180, Minutes: 60}
			every, retention := 2*time.Hour, 5*24*time.Hour
			a.edit(t, db.ID, func(d *model.Database) { d.BackupEvery = every }) // scheduled backups are off here
			if err := a.update(t, db.ID, databases.Change{ConnectionLimit: &limit, MaintenanceWindow: &window, BackupRetention: &retention}); err != nil {
				t.Fatal(err)
			}
			a.backUp(t, db.ID)
			run(t, c, "create table t (n int)")
			owner := connect(t, c)
			if _, err := owner.PgConn().Exec(t.Context(), "begin; insert into t values (1); prepare transaction 'waits'").ReadAll(); err != nil {
				t.Fatal(err)
			}
			const shown = `select concat_ws(' ', current_setting('max_prepared_transactions'), current_setting('statement_timeout'), current_setting('max_locks_per_transaction'),
				current_setting('max_connections'), (select rolconnlimit from pg_roles where rolname = 'app'),
				(select count(*) from t), (select count(*) > 0 from pg_stat_statements))`
			want := answer[string](t, c, shown)
			made, branched := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
			if got := answer[string](t, branched, shown); got != want || !strings.HasPrefix(want, "7 77s 256 ") {
				t.Errorf("the branch has %s, its parent %s", got, want)
			}
			for c, want := range map[*databases.Connection]int{&c: 1, &branched: 0} {
				if got := answer[int](t, *c, "select count(*) from pg_prepared_xacts"); got != want {
					t.Errorf("%s has %d prepared transactions, not %d", c.Database, got, want)
				}
			}
			if d := a.record(t, made.ID); d.ConnectionLimit != limit || d.MaintenanceWindow != window || d.BackupEvery != every || d.BackupRetention != retention {
				t.Errorf("the record: %+v", d)
			}
			if s := a.setting(t, made.ID, "statement_timeout"); s.Source != databases.SettingDatabase {
				t.Errorf("listed as %+v", s)
			}
			// The copy is the branch's own: changing it changes nothing at the parent.
			if err := a.changeSettings(t, made.ID, false, "statement_timeout"); err != nil {
				t.Error(err)
			}
			if got := answer[string](t, c, shown); got != want {
				t.Errorf("the parent has %s", got)
			}
			a.awaitIdle(t)
			a.checkTidy(t)
		})
	}
}
