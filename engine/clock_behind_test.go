package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/engine/recovery"
)

// startBackedUp starts an appliance whose clock is as far ahead as by says, with a database that was backed up after step 1.
func startBackedUp(t *testing.T) (a *appliance, by *atomic.Int64, db databases.View, c databases.Connection, b model.Backup) {
	t.Helper()
	cfg := testConfig(t, newDataDir(t))
	by = ahead(&cfg)
	a = startEngineOn(t, cfg)
	db, c = a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	return a, by, db, c, a.backUp(t, db.ID)
}

// Where the clock was ahead during a restore in place and is right again, times since then refer to the restored data.
func TestClockAheadDuringRestore(t *testing.T) {
	t.Parallel()
	a, by, db, c, b := startBackedUp(t)
	mistake := commitStep(t, c, 666)
	a.awaitArchived(t, db.ID, commitStep(t, c, 667))
	by.Store(int64(2 * time.Hour))
	a.restore(t, db.ID, b.ID)
	by.Store(0)
	a.awaitIdle(t)
	commitStep(t, c, 2)
	at := commitStep(t, c, 3)
	last := commitStep(t, c, 4)
	a.awaitArchived(t, db.ID, last)
	generation := a.record(t, db.ID).Generation
	expect := func(what string, at time.Time, want int) {
		t.Helper()
		plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: at}, nil)
		if err != nil || plan.Target.Generation != want {
			t.Errorf("%s: generation %d, not %d: %v", what, plan.Target.Generation, want, err)
		}
	}
	expect("before the restore", mistake, generation-1)
	expect("after the restore", at, generation)
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen := a.record(t, db.ID).Served[0].Seen; seen.IsZero() || seen.After(last) {
		t.Errorf("seen to serve at %v, and it served at %v", seen, last)
	}
	by.Store(int64(3 * time.Hour)) // past the switch
	expect("after the restore, later", at, generation)
	expect("before the restore, later", mistake, generation-1)
	by.Store(0)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if got := steps(t, c); got != "1 2 3" {
		t.Errorf("restored to after step 3: %q, not \"1 2 3\"", got)
	}
}

// Where the clock was behind during a restore in place, times before it refer to the data before it.
func TestClockBehindDuringRestore(t *testing.T) {
	t.Parallel()
	a, by, db, c, b := startBackedUp(t)
	at := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	by.Store(int64(-2 * time.Hour))
	a.restore(t, db.ID, b.ID)
	by.Store(0)
	a.awaitIdle(t)
	a.awaitArchived(t, db.ID, commitStep(t, c, 4))
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if got := steps(t, c); got != "1 2" {
		t.Errorf("restored to after step 2: %q, not \"1 2\"", got)
	}
}

// What is deleted, replaced or uploaded while the clock is years behind is kept for its whole time once the clock is right.
func TestRetentionWhileClockBehind(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.TrashRetention, cfg.ReplacedRetention, cfg.ObjectTrashRetention = 7*24*time.Hour, 72*time.Hour, 7*24*time.Hour
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	deleted, _ := a.createDatabase(t, "deleted")
	b := a.backUp(t, db.ID)
	bucket, removed, days := a.bucket(t, "photos"), a.bucket(t, "removed"), 30
	if _, err := a.Objects.BucketUpdate(a.call(model.ActionBucketUpdate), bucket, objects.BucketChange{ExpireAfterDays: &days}); err != nil {
		t.Fatal(err)
	}
	sweep := func() {
		t.Helper()
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	by.Store(int64(-10 * 365 * 24 * time.Hour))
	sweep()
	until, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), deleted.ID)
	if err != nil || until.Before(time.Now()) {
		t.Errorf("kept until %v, %v", until, err)
	}
	if until, err := a.Objects.BucketDelete(a.call(model.ActionBucketDelete), removed, false); err != nil || until.Before(time.Now()) {
		t.Errorf("the bucket is kept until %v, %v", until, err)
	}
	a.mustPut(t, bucket, "new", "just uploaded")
	branch, _ := a.branch(t, db.ID, recovery.NewBranch{Name: "try", ExpiresIn: time.Hour})
	a.restore(t, db.ID, b.ID)
	by.Store(0)
	sweep()
	if trash, err := a.Databases.TrashList(a.call(model.ActionTrashList), core.Filter{}, core.Page{}); err != nil || len(trash.Items) != 1 {
		t.Errorf("seconds after its deletion, the trash has %d databases, %v", len(trash.Items), err)
	}
	if a.record(t, branch.ID).Trash != nil {
		t.Error("seconds after it was made, a branch for an hour is in the trash")
	}
	if a.record(t, db.ID).Replaced == nil {
		t.Error("seconds after the restore, the data that it replaced is gone")
	}
	if list, err := a.Objects.ObjectList(a.call(model.ActionObjectList), bucket, "", core.Page{}); err != nil || len(list.Items) != 1 {
		t.Errorf("seconds after the upload: %d objects, %v", len(list.Items), err)
	}
}
