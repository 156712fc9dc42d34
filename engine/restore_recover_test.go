package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/backup"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// A backup that was taken during a transaction with many subtransactions is restored like any other. Nobody can connect
// to recovered data before its recovery has ended.
func TestRestoreUnderSubtransactions(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table open (n int)")
	long := connect(t, c)
	defer long.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{
		"begin",
		"do $$ begin for i in 1..100 loop begin insert into open values (i); exception when division_by_zero then null; end; end loop; end $$",
	} {
		if _, err := long.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	b := a.backUp(t, db.ID)
	a.restore(t, db.ID, b.ID)
	if n := answer[int](t, c, "select count(*) from open"); n != 0 {
		t.Errorf("%d rows of an open transaction", n)
	}
	a.awaitArchived(t, db.ID, commitStepInto(t, c))
	a.mustHaveNoGap(t, db.ID)
}

// A restored server that dies, and cannot be restarted, ends the restore.
func TestRecoveredServerStaysDown(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	run(t, c, "create table filler (t text)")
	run(t, c, "insert into filler select repeat(md5(n::text), 30) from generate_series(1, 100000) n")
	at := commitStepInto(t, c)
	a.awaitArchived(t, db.ID, at)
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
	if err != nil || plan.Backup.ID != b.ID {
		t.Fatal(plan.Backup.ID, err)
	}
	scratch := a.unpackScratch(t, db.ID, plan, filepath.Join(t.TempDir(), "data"))
	ruin := sync.OnceFunc(func() {
		if err := os.Remove(filepath.Join(scratch.Dir, "global", "pg_control")); err != nil {
			t.Error(err)
		}
		testenv.Catch(t, time.Minute, "the start of the server, which answers already", func() bool {
			_, _, pid := a.Databases.Instances.Status(scratch.ID)
			return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
		})
	})
	err = a.Recovery.StartRecovered(t.Context(), scratch, plan, func(int64, int64) { ruin() })
	if err == nil || !strings.Contains(err.Error(), "does not come back") && !strings.Contains(err.Error(), "connect to recovered instance") { // all of it may be there at the first contact
		t.Errorf("recovered: %v", err)
	}
	if err := a.Databases.StopInstance(t.Context(), scratch.ID); err != nil {
		t.Error(err)
	}
	if _, _, pid := a.Databases.Instances.Status(scratch.ID); pid != 0 {
		t.Errorf("it runs as %d", pid)
	}
}

// A backup, and a time after it, can be restored even if settings have been lowered since.
func TestRestoreWithLoweredSettings(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	set := func(value string) {
		t.Helper()
		change := map[string]string{"max_connections": value, "max_locks_per_transaction": value, "max_prepared_transactions": value}
		if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, change); err != nil {
			t.Fatal(err)
		}
	}
	set("150")
	b := a.backUp(t, db.ID)
	at := commitStepInto(t, c)
	a.awaitArchived(t, db.ID, at)
	set("20")
	a.restore(t, db.ID, b.ID)
	a.awaitIdle(t)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if n := answer[int](t, c, "select count(*) from steps"); n != 1 {
		t.Errorf("%d steps", n)
	}
	a.awaitIdle(t)
	a.backUp(t, db.ID)
	set("") // the machine's default, which is higher
	at = commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, at)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
}

// A server that did not shut down cleanly leaves an incomplete directory: the restore does not switch to it, and its
// pages are not verified.
func TestRecoveredServerMustStopInOrder(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), impatient)
	stuck, c := a.createDatabase(t, "stuck")
	killed, k := a.createDatabase(t, "killed")
	inOrder, _ := a.createDatabase(t, "in_order")
	stick(t, c)
	stick(t, k) // otherwise it may shut down cleanly before the force
	atOnce, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Databases.Instances.Stop(atOnce, killed.ID); err == nil {
		t.Fatal("it took no force")
	}
	for _, test := range []struct {
		db   databases.View
		want error
	}{{stuck, backup.ErrNotShutDown}, {killed, backup.ErrNotShutDown}, {inOrder, nil}} {
		spec, err := a.Databases.Spec(t.Context(), test.db.Database)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Recovery.StopRecovered(t.Context(), spec); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.db.Name, err)
		}
	}
}

// A restore does not fail because the recovered server takes long to write what it has replayed: it has no clients that wait.
func TestSlowShutdownOfRestored(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	b := a.backUp(t, db.ID)
	a.Databases.Timeouts.Stop = time.Millisecond // as if every shutdown took much longer
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("restored"))
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
}
