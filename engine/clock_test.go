package engine

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// A clock that was a year ahead when a backup was made, and is set back, prevents neither a restore, because times come
// from the WAL, nor the next backup that is due.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupInterval, cfg.BackupRetention = 24*time.Hour, 7*24*time.Hour
	by.Store(int64(365 * 24 * time.Hour))
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	wrong := a.backUp(t, db.ID)
	by.Store(0)
	at := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))

	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	now := time.Now()
	if err != nil || r.Window.Latest == nil || r.Window.Latest.After(now) || r.Window.Earliest.After(*r.Window.Latest) || *r.RPO > time.Minute {
		t.Errorf("recovery: %+v, %v", r, err)
	}
	if r.NextBackup == nil || r.NextBackup.After(now) {
		t.Errorf("the next backup is due at %v, and the only one was made by a wrong clock", r.NextBackup)
	}
	if plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil); err != nil || plan.Backup.ID != wrong.ID {
		t.Errorf("plan: %+v, %v", plan, err)
	}
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if got := steps(t, c); got != "1 2" {
		t.Errorf("steps: %s", got)
	}
	a.awaitIdle(t)
	testenv.Within(t, time.Minute, "the backup after the restore", func() bool { return len(a.backups(t, db.ID)) == 2 })
	a.awaitIdle(t)
	a.Recovery.BackUpDue(t.Context())
	a.Recovery.BackUpDue(t.Context())
	if all := a.backups(t, db.ID); len(all) != 2 { // newest first, by ids that contain the time
		t.Errorf("backups: %+v", all)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := a.backups(t, db.ID); len(all) != 2 {
		t.Errorf("backups after a sweep: %+v", all)
	}
}

// believe makes the engine trust the current clock.
func believe(e *Engine) {
	e.Core.Guard.Mu.Lock()
	defer e.Core.Guard.Mu.Unlock()
	e.Core.Guard.Believed.Time = e.Core.WallClock()
}

// If the clock jumps ten years ahead, nothing is removed before the appliance has run for the grace period, and nothing
// at all if the clock comes back. What would have been removed stays usable meanwhile.
func TestClockLeap(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupRetention = 7 * 24 * time.Hour
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	deleted, _ := a.createDatabase(t, "deleted")
	older := a.backUp(t, db.ID)
	a.restore(t, db.ID, older.ID)
	a.awaitIdle(t)
	testenv.Within(t, time.Minute, "the backup after the restore", func() bool { return len(a.backups(t, db.ID)) == 2 })
	a.awaitIdle(t)
	remove := func() {
		t.Helper()
		if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), deleted.ID); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	sweep := func(want bool) {
		t.Helper()
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, err := a.Databases.Record(db.ID)
		if err != nil {
			t.Fatal(err)
		}
		trash, err := a.Databases.TrashList(a.call(model.ActionTrashList), core.Filter{}, core.Page{})
		if err != nil {
			t.Fatal(err)
		}
		backups := len(a.backups(t, db.ID)) == 2
		if kept := now.Replaced != nil; backups != want || kept != want || (len(trash.Items) == 1) != want {
			t.Errorf("kept: backups %t, replaced data %t, deleted databases %d; all of that should be %t", backups, kept, len(trash.Items), want)
		}
	}
	told := func() bool {
		t.Helper()
		all, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all, func(r model.Recommendation) bool { return r.Code == "clock_leapt" })
	}
	sweep(true)
	if told() {
		t.Error("told of a leap before there was one")
	}
	by.Store(int64(10 * 365 * 24 * time.Hour))
	sweep(true)
	if !told() {
		t.Error("nobody was told")
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), deleted.ID); err != nil {
		t.Errorf("what is kept cannot be brought back: %v", err)
	}
	remove()
	by.Store(0)
	sweep(true)
	if told() {
		t.Error("the clock has come back, and a leap is told of")
	}

	by.Store(int64(10*365*24*time.Hour + 2*time.Hour)) // by that clock it was deleted
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	sweep(true)
	a.Core.Guard.Mu.Lock()
	a.Core.Guard.UpdatedAt = a.Core.Guard.UpdatedAt.Add(-core.ClockGrace)
	a.Core.Guard.Mu.Unlock()
	sweep(false)
	if told() {
		t.Error("the clock is believed, and a leap is told of")
	}
}

// TestClockLeapKeepsUploads: a clock that is ahead for one sweep removes no bytes of uploads that go on.
func TestClockLeapKeepsUploads(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	u := &uploads{t, a, a.bucket(t, "files")}
	resumable := u.create("resumable", 10, false)
	if _, err := u.send(t.Context(), resumable.ID, strings.NewReader("12345")); err != nil {
		t.Fatal(err)
	}
	call := a.call(model.ActionUploadCreate)
	parts, err := a.Objects.MultipartCreate(call, objects.NewMultipart{Bucket: u.bucket, Key: "parts"})
	if err != nil {
		t.Fatal(err)
	}
	by.Store(int64(365 * 24 * time.Hour))
	if err := a.Objects.SweepUploads(t.Context()); err != nil {
		t.Fatal(err)
	}
	by.Store(0)
	if got, err := u.get(resumable.ID); err != nil || got.Offset != 5 {
		t.Errorf("the resumable upload: %+v, %v", got, err)
	}
	if _, err := a.Objects.MultipartGet(call, u.bucket, "parts", parts.ID); err != nil {
		t.Errorf("the multipart upload: %v", err)
	}
}

// A machine that is off every weekend, and runs eight hours a day, does not trust its clock at once on a Monday, but
// eventually does. A machine whose clock starts in the past at every boot is never delayed.
func TestBelievedClock(t *testing.T) {
	t.Parallel()
	monday := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	b, heldOn, freeOn := core.BelievedClock{Time: monday.AddDate(0, 0, -3).Add(8 * time.Hour)}, 0, 0
	for day := range 28 {
		if day%7 >= 5 {
			continue
		}
		morning := monday.AddDate(0, 0, day)
		b = b.After(0, morning)
		for minute := range 8 * 60 {
			b = b.After(time.Minute, morning.Add(time.Duration(minute+1)*time.Minute))
		}
		if b.Ahead(morning.Add(8*time.Hour)) > 0 {
			heldOn++
		} else {
			freeOn++
		}
	}
	if heldOn == 0 || freeOn < 2 {
		t.Errorf("held back on %d days, and not on %d", heldOn, freeOn)
	}

	b = core.BelievedClock{Time: monday}
	for day := range 10 {
		b = b.After(0, time.Unix(0, 0))
		now := monday.AddDate(0, 0, day).Add(time.Minute)
		if b = b.After(time.Minute, now); b.Ahead(now) > 0 {
			t.Errorf("held back on day %d, when the time was asked for", day)
		}
	}
	now := monday.AddDate(1, 0, 0)
	for b = b.After(0, now); b.Ahead(now) > 0; b = b.After(time.Hour, now) {
		now = now.Add(time.Hour)
	}
	if waited := now.Sub(monday.AddDate(1, 0, 0)); waited != core.ClockGrace {
		t.Errorf("a clock was believed after %v", waited)
	}
}

// A backup whose verification has failed does not count: the good one before it stays, restores use that one, and the
// next backup does not build on the failed one, even after a restart.
func TestDamagedBackupCountsForNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	by := ahead(&cfg)
	cfg.BackupRetention = 7 * 24 * time.Hour
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, md5(n::text) as text from generate_series(1, 50000) n")
	const rows = "select count(*) || ' ' || sum(hashtext(text)) from t"
	good, bad := a.backUp(t, db.ID), a.backUp(t, db.ID)
	if err := a.Recovery.UpdateBackup(bad.ID, func(b *model.Backup) {
		b.Verification = model.Verification{Status: model.VerificationFailed, Detail: "by hand"}
	}); err != nil {
		t.Fatal(err)
	}
	at := answer[time.Time](t, c, "insert into t values (0, 'x') returning clock_timestamp()")
	run(t, c, "delete from t where n > 49000")
	a.awaitArchived(t, db.ID, answer[time.Time](t, c, "select clock_timestamp()"))
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
	if err != nil || plan.Backup.ID != good.ID {
		t.Errorf("plan: %+v, %v; the good backup is %s", plan.Backup, err, good.ID)
	}
	by.Store(int64(cfg.BackupRetention + time.Hour))
	believe(a.Engine)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all := a.backups(t, db.ID); len(all) != 1 || all[0].ID != good.ID {
		t.Fatalf("after a sweep: %+v", all)
	}
	by.Store(0)

	if err := a.Recovery.UpdateBackup(good.ID, func(b *model.Backup) {
		b.Verification = model.Verification{Status: model.VerificationFailed, Detail: "by hand"}
	}); err != nil {
		t.Fatal(err)
	}
	spoil(t, a.packOf(t, db.ID))
	a.abandon(t)
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	want := answer[string](t, c, rows)
	next := a.backUp(t, db.ID)
	run(t, c, "truncate t")
	a.restore(t, db.ID, next.ID)
	if got := answer[string](t, c, rows); got != want {
		t.Errorf("restored %s, not %s", got, want)
	}
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, good.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message := a.awaitOperation(t, op, model.OperationFailed); !strings.Contains(message, "damaged") {
		t.Errorf("a restore of the damaged one: %s", message)
	}
}

// spoil flips a bit in every 100 kB of a file.
func spoil(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 1000; at < len(b); at += 100_000 {
		b[at] ^= 1
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
