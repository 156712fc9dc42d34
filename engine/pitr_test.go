package engine

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// commitStep commits a numbered row and returns a time between its response and the next row.
func commitStep(t *testing.T, c databases.Connection, n int) time.Time {
	t.Helper()
	run(t, c, fmt.Sprintf("insert into steps values (%d)", n))
	at := answer[time.Time](t, c, "select clock_timestamp()")
	time.Sleep(5 * time.Millisecond) // so that the next row has a later time, in microseconds
	return at
}

// startStepped starts an engine with a database whose backup contains step 1.
func startStepped(t *testing.T) (*appliance, databases.View, databases.Connection, model.Backup) {
	t.Helper()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	return a, db, c, a.backUp(t, db.ID)
}

func steps(t *testing.T, c databases.Connection) string {
	t.Helper()
	return answer[string](t, c, "select coalesce(string_agg(n::text, ' ' order by n), '') from steps")
}

// awaitArchived waits until everything committed up to that time is safe.
func (a *appliance) awaitArchived(t *testing.T, database string, until time.Time) {
	t.Helper()
	testenv.Within(t, time.Minute, "the archive", func() bool {
		status, ok := a.Recovery.WALStatus(database)
		return ok && !status.RestorableTo.Before(until)
	})
}

func (a *appliance) goTo(t *testing.T, database string, at recovery.RestorePoint) {
	t.Helper()
	op, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), database, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.awaitStatus(t, database, model.DatabaseAvailable, time.Minute)
}

// Restores go back to a time, back again from there, forward to data that the first restore left behind, and to an LSN,
// and are undone: each time everything committed before the target is there, and nothing after it.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	var at [8]time.Time
	for n := 2; n <= 7; n++ {
		at[n] = commitStep(t, c, n)
	}
	a.awaitArchived(t, db.ID, at[7])

	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at[3]}, nil)
	if err != nil || plan.Backup.ID == "" || plan.WALBytes() <= 0 || plan.At.After(at[3]) {
		t.Fatalf("plan: %+v, %v", plan, err)
	}
	if got := steps(t, c); got != "1 2 3 4 5 6 7" {
		t.Errorf("after a dry run: %s", got)
	}
	expect := func(what, want string) {
		t.Helper()
		if got := steps(t, c); got != want {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at[5]})
	expect("to 5", "1 2 3 4 5")
	if served, err := a.Databases.Record(db.ID); err != nil || served.Served[0].Since.After(answer[time.Time](t, c, "select pg_postmaster_start_time()")) {
		t.Errorf("what a client committed first is not found: %+v, %v", served.Served, err)
	}
	later := commitStep(t, c, 50)
	lsn := answer[string](t, c, "select pg_current_wal_lsn()::text")
	commitStep(t, c, 51)
	a.awaitArchived(t, db.ID, commitStep(t, c, 52))
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at[3]})
	expect("to 3, which is before the first restore", "1 2 3")
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at[6]})
	expect("forward to 6, in the generation that served then", "1 2 3 4 5 6")
	a.goTo(t, db.ID, recovery.RestorePoint{Time: later})
	expect("to what was written after the first restore", "1 2 3 4 5 50")
	a.undo(t, db.ID)
	expect("undone", "1 2 3 4 5 6")
	a.undo(t, db.ID)
	a.goTo(t, db.ID, recovery.RestorePoint{LSN: lsn})
	expect("by LSN", "1 2 3 4 5 50")
	a.awaitIdle(t)

	testenv.Within(t, time.Minute, "a backup of the new timeline", func() bool {
		all := a.backups(t, db.ID)
		return len(all) > 1 && all[0].Status == model.BackupCompleted && all[0].Type == model.BackupScheduled
	})
	a.awaitIdle(t)
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || r.State != recovery.RecoveryAvailable || r.Window.Earliest == nil || r.Window.Latest == nil || r.Archiving.Segments == 0 {
		t.Errorf("recovery: %+v, %v", r, err)
	}
	a.checkTidy(t)
}

// A time just past can be restored, although the archive always lags slightly.
func TestPointJustNow(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	for range 3 {
		now := answer[time.Time](t, c, "select clock_timestamp()")
		if _, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: now}, nil); err != nil {
			t.Error(err)
		}
	}
}

// The recorded end of a backup is slightly later than the actual one: a restore requested at once also waits for
// commits up to the recorded end.
func TestWindowAtTheEndOfABackup(t *testing.T) {
	t.Parallel()
	a, db, _, _ := startStepped(t)
	for range 3 {
		at := a.Core.Clock().Truncate(time.Millisecond).Add(time.Millisecond)
		a.Recovery.AwaitArchive(t.Context(), db.ID, at)
		if status, _ := a.Recovery.WALStatus(db.ID); status.RestorableTo.Before(at) {
			t.Errorf("waited for %v, and the archive reaches to %v", at, status.RestorableTo)
		}
	}
}

// Every time that a client is shown can be restored, and refers to the data that it is shown for.
func TestToldTimesCanBeRestored(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	get := func() recovery.Recovery {
		t.Helper()
		r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
		if err != nil || r.Window.Earliest == nil {
			t.Fatalf("recovery: %+v, %v", r, err)
		}
		return r
	}
	plan := func(what string, at time.Time) recovery.RestorePlan {
		t.Helper()
		p, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at.Truncate(time.Microsecond)}, nil)
		if err != nil {
			t.Errorf("%s, %v: %v", what, at, err)
		}
		return p
	}
	r := get() // just after the first backup
	plan("the earliest", *r.Window.Earliest)
	plan("the latest", *r.Window.Latest)
	for n := 2; n <= 5; n++ {
		a.awaitArchived(t, db.ID, commitStep(t, c, n))
	}
	r = get()
	p := plan("the latest after commits", *r.Window.Latest)
	if again := plan("the last commit", p.At); again.Target != p.Target {
		t.Errorf("the last commit's time, %v, means %+v, not %+v", p.At, again.Target, p.Target)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: *r.Window.Latest})
	if got := steps(t, c); got != "1 2 3 4 5" {
		t.Errorf("at the latest: %s", got)
	}
	a.awaitIdle(t)
	served, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if p := plan("the switch", served.Served[0].Since); p.Target.Generation != served.Generation {
		t.Errorf("the switch at %v means what it replaced: %+v", served.Served[0].Since, p.Target)
	}
	r = get()
	for _, event := range r.Timeline {
		plan("the "+event.Type, event.At)
	}
	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	r = get()
	plan("the latest while nothing is received", *r.Window.Latest)
}

// A time in the window whose backups were deleted is refused with the reason.
func TestPointWithoutABackup(t *testing.T) {
	t.Parallel()
	a, db, c, first := startStepped(t)
	madeAfter := func(switched func()) (b model.Backup) { // made by the appliance itself
		t.Helper()
		before := len(a.backups(t, db.ID))
		switched()
		testenv.Within(t, time.Minute, "a backup of what was switched to", func() bool {
			all := a.backups(t, db.ID)
			b = all[0]
			return len(all) > before && b.Status == model.BackupCompleted
		})
		a.awaitIdle(t)
		return b
	}
	madeAfter(func() { a.restore(t, db.ID, first.ID) })
	second := madeAfter(func() { a.undo(t, db.ID) })
	at := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, at)
	a.backUp(t, db.ID)
	for _, b := range []model.Backup{first, second} {
		if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, b.ID); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
	if model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "no backup from before it is left") {
		t.Errorf("got %v", err)
	}
}

// An LSN that the present server has written is of the present data, whatever the archive has of it: never of data that a restore
// replaced, in which the LSNs are the same. One from beyond is of the last data that reached it.
func TestLSNAfterRestores(t *testing.T) {
	t.Parallel()
	a, db, c, b := startStepped(t)
	ahead := func(step, segments int) (lsn string) {
		for n := range segments {
			commitStep(t, c, step+n)
			a.asSuperuser(t, db.ID, "select pg_catalog.pg_switch_wal()")
		}
		commitStep(t, c, step+segments)
		lsn = answer[string](t, c, "select pg_current_wal_lsn()::text")
		a.awaitArchived(t, db.ID, commitStep(t, c, step+segments+1))
		return lsn
	}
	back := func(backups int) {
		a.restore(t, db.ID, b.ID)
		testenv.Within(t, time.Minute, "the backup of the restored data", func() bool {
			all := a.backups(t, db.ID)
			return len(all) == backups && all[0].Status == model.BackupCompleted
		})
		a.awaitIdle(t)
	}
	plan := func(lsn string) (generation int, err error) {
		p, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{LSN: lsn}, nil)
		return p.Target.Generation, err
	}
	first := ahead(100, 12)
	back(2)
	second := ahead(200, 8)
	back(3)
	for want, lsn := range map[int]string{1: first, 2: second} {
		if generation, err := plan(lsn); err != nil || generation != want {
			t.Errorf("%s of generation %d leads to %d, %v", lsn, want, generation, err)
		}
	}
	for n := range 5 {
		commitStep(t, c, 300+n)
		lsn := answer[string](t, c, "select pg_current_wal_lsn()::text")
		if generation, err := plan(lsn); err != nil || generation != 3 {
			t.Errorf("%s, which was written just now, leads to generation %d, %v", lsn, generation, err)
		}
	}
	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	commitStep(t, c, 400)
	lsn := answer[string](t, c, "select pg_current_wal_lsn()::text")
	if generation, err := plan(lsn); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("%s, which is not archived, leads to generation %d, %v", lsn, generation, err)
	}
}

// The window ends with the archive, even if a backup's recorded end is later, because the clock was set back since.
func TestWindowEndsWithTheArchive(t *testing.T) {
	t.Parallel()
	a, db, c, b := startStepped(t)
	a.awaitArchived(t, db.ID, commitStep(t, c, 2))
	if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { *b.CompletedAt = a.Core.Clock().Add(time.Hour) }); err != nil {
		t.Fatal(err)
	}
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: *r.Window.Latest}, nil); err != nil {
		t.Errorf("the latest moment, %s: %v", r.Window.Latest, err)
	}
}

// A target outside the window is refused with the window in the message, and nothing changes.
func TestPointOutsideTheWindow(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	before := commitStep(t, c, 1)
	if _, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: before}, nil); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("without a backup: %v", err)
	}
	a.backUp(t, db.ID)
	last := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, last)
	for name, at := range map[string]recovery.RestorePoint{
		"before the first backup": {Time: before},
		"tomorrow":                {Time: time.Now().Add(24 * time.Hour)},
		"an LSN to come":          {LSN: "FF/0"},
		"no LSN":                  {LSN: "0/0"},
	} {
		_, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, at, nil)
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(model.PublicMessage(err), "target_") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := steps(t, c); got != "1 2" {
		t.Errorf("steps: %s", got)
	}
	a.awaitIdle(t)
}

// A restore into a new database leaves the old one running; a crash in the middle leaves nothing of the new one.
func TestRestoreIntoANewDatabase(t *testing.T) {
	t.Parallel()
	a, db, c, b := startStepped(t)
	at := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))

	op, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, new("copy"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, new("other")); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a second one meanwhile: %v", err)
	}
	commitStep(t, c, 4)
	a.awaitOperation(t, op, model.OperationCompleted)
	a.awaitStatus(t, op.NewDatabase, model.DatabaseAvailable, time.Minute)
	record, err := a.Databases.Record(op.NewDatabase)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := a.Databases.ConnectionOf(record, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := steps(t, copied); got != "1 2" {
		t.Errorf("the copy: %s", got)
	}
	if got := steps(t, c); got != "1 2 3 4" {
		t.Errorf("the source: %s", got)
	}
	if copied.Password.Reveal() == c.Password.Reveal() {
		t.Error("the copy has the password of the source")
	}
	a.awaitIdle(t)
	a.backUp(t, op.NewDatabase) // its WAL is archived, too
	if r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), op.NewDatabase); err != nil || len(r.Archiving.Gaps) > 0 {
		t.Errorf("the copy's archive: %+v, %v", r.Archiving, err)
	}

	if _, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("copy")); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a name that is taken: %v", err)
	}
	op, err = a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("third"))
	if err != nil {
		t.Fatal(err)
	}
	a.abandon(t)
	next := a.reopen(t)
	if _, err := next.Databases.Record(op.NewDatabase); err == nil {
		if got, _ := next.status(t, op.NewDatabase); got != model.DatabaseAvailable {
			t.Errorf("half a database is left: %s", got)
		}
	}
	next.checkTidy(t)
}

// The first backup can be restored as soon as it is completed: the WAL that it needs is not pruned before its record
// says which WAL that is.
func TestFirstBackupKeepsItsWAL(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	b := a.backUp(t, db.ID)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, c, "drop table kept")
	a.restore(t, db.ID, b.ID)
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
}

// WAL that no backup needs does not accumulate, even without any backup.
func TestWALWithoutABackupIsPruned(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table filler (t text)")
	archive, err := a.Recovery.WALArchive(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // at least two segments of 16 MiB
		run(t, c, "insert into filler select repeat(md5(n::text), 30) from generate_series(1, 20000) n")
	}
	a.awaitArchived(t, db.ID, answer[time.Time](t, c, "select clock_timestamp()"))
	testenv.Within(t, time.Minute, "only the newest segments", func() bool {
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		return archive.Sizes(db.Generation).Segments <= 2
	})
	a.backUp(t, db.ID) // which continues after it
	at := commitStepInto(t, c)
	a.awaitArchived(t, db.ID, at)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
}

// The generation that an undo brings back continues where its archive ended, even if no backup of it remains.
func TestUndoGoesOnArchiving(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	first := a.backUp(t, db.ID)
	a.restore(t, db.ID, first.ID) // a data directory whose history forked from another
	run(t, c, "create table filler (t text)")
	run(t, c, "insert into filler select repeat(md5(n::text), 30) from generate_series(1, 20000) n")
	second := a.backUp(t, db.ID)
	a.restore(t, db.ID, second.ID)
	third := a.backUp(t, db.ID)
	a.keepBackup(t, db.ID, third)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.undo(t, db.ID)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	a.awaitArchived(t, db.ID, commitStepInto(t, c))
	a.mustHaveNoGap(t, db.ID)
}

// The current generation continues where its archive ended, even if its WAL was pruned while no receiver ran, for
// backups that do not lead to it.
func TestPruneWhileNobodyReceives(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table filler (t text)")
	first, second := a.backUp(t, db.ID), a.backUp(t, db.ID)
	a.restore(t, db.ID, first.ID)
	a.awaitIdle(t)
	run(t, c, "insert into filler select repeat(md5(n::text), 30) from generate_series(1, 20000) n")
	a.awaitArchived(t, db.ID, answer[time.Time](t, c, "select clock_timestamp()"))
	a.backUp(t, db.ID) // its checkpoint removes WAL from the server
	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	a.keepBackup(t, db.ID, second)
	if err := a.Recovery.PruneWAL(db.ID); err != nil {
		t.Fatal(err)
	}
	now, err := a.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.ReceiveWAL(now); err != nil {
		t.Fatal(err)
	}
	a.awaitArchived(t, db.ID, commitStepInto(t, c))
	a.mustHaveNoGap(t, db.ID)
}

// keepBackup deletes all other backups of a database.
func (a *appliance) keepBackup(t *testing.T, database string, kept model.Backup) {
	t.Helper()
	for _, b := range a.backups(t, database) {
		if b.ID != kept.ID {
			if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), database, b.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (a *appliance) mustHaveNoGap(t *testing.T, database string) {
	t.Helper()
	recovery, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), database)
	if err != nil || len(recovery.Archiving.Gaps) > 0 {
		t.Errorf("gaps %+v, %v", recovery.Archiving.Gaps, err)
	}
}

func commitStepInto(t *testing.T, c databases.Connection) time.Time {
	t.Helper()
	run(t, c, "create table steps (n int)")
	return commitStep(t, c, 1)
}

// A server that had to be stopped by force for a restore may have committed more than the archive has: a later time is
// refused, not treated as idle.
func TestSwitchByForce(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)), func(e *Engine) { e.Databases.Timeouts.Stop = 5 * time.Second })
	db, c := a.createDatabase(t, "shop")
	commitStepInto(t, c)
	b := a.backUp(t, db.ID)
	a.awaitArchived(t, db.ID, commitStep(t, c, 2))
	undrained := func() bool {
		t.Helper()
		now, err := a.Databases.Record(db.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.Served[len(now.Served)-1].Undrained
	}
	a.restore(t, db.ID, b.ID)
	if undrained() {
		t.Error("a server that was shut down in order is taken for one that was not")
	}
	a.awaitIdle(t)
	last := commitStep(t, c, 3)
	a.awaitArchived(t, db.ID, commitStep(t, c, 4))
	stick(t, c)
	quiet := time.Now()
	a.restore(t, db.ID, b.ID)
	if !undrained() {
		t.Error("a server that was stopped by force is taken for one that was shut down")
	}
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: quiet}, nil)
	if err == nil {
		t.Fatalf("a moment is restored by which more may have been committed: %+v", plan)
	}
	named := regexp.MustCompile(`the last commit that is known is of (\S+); choose that moment, or one from (\S+) on$`).FindStringSubmatch(err.Error())
	if named == nil {
		t.Fatalf("the moments beside it are not named: %v", err)
	}
	for _, text := range named[1:] {
		moment, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: moment}, nil); err != nil {
			t.Errorf("the moment that a refusal names: %v", err)
		}
	}
	if _, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: last}, nil); err != nil {
		t.Errorf("a moment before: %v", err)
	}
}

// Two restores from the same history create the same timeline twice. A backup of the second does not build on one of
// the first: their WAL differs.
func TestBackupsOfTwinTimelines(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, 'at first' as v from generate_series(1, 20000) n")
	a.backUp(t, db.ID)
	moment := func() time.Time { return answer[time.Time](t, c, "select clock_timestamp()") }
	write := func(value string) time.Time {
		run(t, c, "update t set v = '"+value+"'")
		return moment()
	}
	const values = "select string_agg(distinct v, ' ') || ' ' || count(*) from t"
	run(t, c, "create table marker ()") // so that nothing later is replayed
	first := moment()
	second := write("history")
	a.awaitArchived(t, db.ID, second)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: first})
	write("first twin")
	backUp := func() model.Backup {
		a.awaitIdle(t)
		testenv.Within(t, time.Minute, "the backup after a restore", func() bool {
			b := a.backups(t, db.ID)[0]
			return b.Status == model.BackupCompleted && b.Type == model.BackupScheduled
		})
		a.awaitIdle(t)
		return a.backUp(t, db.ID)
	}
	backUp()
	a.goTo(t, db.ID, recovery.RestorePoint{Time: second})
	b := backUp()
	if b.Timeline != 2 || b.Generation != 3 {
		t.Errorf("the backup of the second twin is on timeline %d of generation %d", b.Timeline, b.Generation)
	}
	run(t, c, "truncate t")
	a.restore(t, db.ID, b.ID)
	if got := answer[string](t, c, values); got != "history 20000" {
		t.Errorf("the backup of the second twin holds %q", got)
	}
}

// A backup that is running at a moment contains pages from after it. When the database has been restored to that
// moment, its history no longer passes through the end of the backup, so the backup must not be rolled forward on it.
func TestBackupAcrossAFork(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	a.backUp(t, db.ID)
	across := a.backUp(t, db.ID)
	stop, err := xlog.ParseLSN(across.StopLSN)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitArchived(t, db.ID, commitStep(t, c, 2))
	a.goTo(t, db.ID, recovery.RestorePoint{LSN: (stop - 1).String()})
	run(t, c, "select pg_logical_emit_message(false, 'fill', repeat('x', 1000000)) from generate_series(1, 40)")
	testenv.Within(t, time.Minute, "the backup that follows a restore", func() bool {
		return a.backups(t, db.ID)[0].ID != across.ID && a.backups(t, db.ID)[0].Status == model.BackupCompleted
	})
	a.awaitIdle(t)
	if err := a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, a.backups(t, db.ID)[0].ID); err != nil {
		t.Fatal(err)
	}
	last := commitStep(t, c, 3)
	a.awaitArchived(t, db.ID, last)
	at := recovery.RestorePoint{Time: last}
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, at, nil)
	if err != nil || plan.Backup.ID == across.ID {
		t.Fatalf("planned from %s: %v", plan.Backup.ID, err)
	}
	a.goTo(t, db.ID, at)
	if got := steps(t, c); got != "1 3" {
		t.Errorf("restored %s", got)
	}
}

// Settings that a standby must not have smaller are raised after a backup and lowered again: the moments while they were
// high and after can be restored, though neither the backup's server nor the present one had such values.
func TestRestoreAcrossRaisedSettings(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	b := a.backUp(t, db.ID)
	for n, change := range []string{"max_locks_per_transaction=300", "max_locks_per_transaction=500", "max_locks_per_transaction"} {
		if err := a.changeSettings(t, db.ID, true, change); err != nil {
			t.Fatal(err)
		}
		commitStep(t, c, n+2)
	}
	high := a.Core.Clock()
	commitStep(t, c, 5)
	if newest := a.backups(t, db.ID)[0].ID; newest != b.ID {
		t.Fatalf("the restore begins with the backup %s", newest)
	}
	testenv.Eventually(t, "the archive of "+high.String(), func() bool {
		r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
		return err == nil && r.Window.Latest != nil && !r.Window.Latest.Before(high)
	})
	if a.goTo(t, db.ID, recovery.RestorePoint{Time: high}); steps(t, c) != "1 2 3 4" {
		t.Errorf("steps %s", steps(t, c))
	}
	if got := answer[string](t, c, "show max_locks_per_transaction"); got != a.setting(t, db.ID, "max_locks_per_transaction").Default {
		t.Errorf("the restored server has max_locks_per_transaction = %s", got)
	}
}
