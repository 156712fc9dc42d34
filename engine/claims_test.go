package engine

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// Who was told that an act is done may go on, though it still tidies up.
func TestClaimThatEnds(t *testing.T) {
	t.Parallel()
	c := core.NewClaims()
	take := func(id, what string) func() {
		t.Helper()
		release, err := c.Take(id, what)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	restore, backups := take("db_1", "a restore"), take(databases.BackupClaim("db_1"), "a restore")
	if _, err := c.Take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restore: %v", err)
	}
	databases.EndClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestore})
	next := make(chan func(), 2)
	go func() { next <- take("db_1", "a restart") }()
	go func() { next <- take(databases.BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restore()
	backups()
	(<-next)()
	(<-next)()

	// A backup beside another act ends by itself.
	backup, restart := take(databases.BackupClaim("db_1"), "a backup"), take("db_1", "a restart")
	databases.EndClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestart})
	if _, err := c.Take(databases.BackupClaim("db_1"), "a backup"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a backup: %v", err)
	}
	databases.EndClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationBackup})
	go func() { next <- take(databases.BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restart()
	backup()
	(<-next)()

	// A restore into another database holds that, and the backups of the first.
	made, backups, restart := take("db_2", "the creation"), take(databases.BackupClaim("db_1"), "a restore"), take("db_1", "a restart")
	databases.EndClaims(c, model.DatabaseOperation{Database: "db_1", NewDatabase: "db_2", Type: model.OperationRestore})
	if _, err := c.Take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restart: %v", err)
	}
	go func() { next <- take("db_2", "a restart") }()
	go func() { next <- take(databases.BackupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	made()
	backups()
	restart()
	(<-next)()
	(<-next)()
	if len(c.Held) > 0 {
		t.Errorf("%d claims are left", len(c.Held))
	}
}

// mustWait fails if an act begins that another is in the way of.
func mustWait(t *testing.T, next <-chan func()) {
	t.Helper()
	select {
	case <-next:
		t.Fatal("two acts at once")
	case <-time.After(20 * time.Millisecond): // nothing can be waited for: it must not come
	}
}

// What is seen to be done refuses nobody, however long it takes until whoever
// did it learns that it is recorded.
func TestClaimEndsBeforeItsRecord(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	release, err := a.Core.Claims.Take(db.ID, "a restart")
	if err != nil {
		t.Fatal(err)
	}
	op, err := a.Databases.BeginOperation(db.Database, model.OperationRestart, model.DatabaseRestarting, "restarting")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	recorded := make(chan error, 1)
	go func() {
		recorded <- a.Core.Meta.Update(func(tx *meta.Tx) error {
			tx.OnCommit(func() { <-seen })
			_, err := a.Databases.ReleaseDatabase(tx, op, nil)
			return err
		})
	}()
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	next := make(chan error, 1)
	go func() {
		_, err := a.Core.Claims.Take(db.ID, "another restart")
		next <- err
	}()
	select {
	case err := <-next:
		t.Errorf("it is done, and %v", err)
		next <- nil
	case <-time.After(20 * time.Millisecond): // it waits
	}
	close(seen)
	if err := <-recorded; err != nil {
		t.Error(err)
	}
	release()
	if err := <-next; err != nil {
		t.Error(err)
	}
}

// A scheduled backup gives way to what a person asks for, whenever it begins.
func TestScheduledBackupGivesWayWheneverItBegins(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	c := &core.Core{Claims: core.NewClaims(), Cancels: core.NewCancels(), Lifetime: ctx}
	d := databases.New(c)
	e := &Engine{Core: c, Databases: d, Recovery: recovery.New(c, d, nil)}
	var scheduled sync.WaitGroup
	scheduled.Go(func() {
		for ctx.Err() == nil {
			var backup context.Context
			var ended func()
			release, err := e.Core.Claims.TakeAnd(databases.BackupClaim("db_1"), recovery.Backing, func() {
				backup, ended = e.Recovery.CancelableBackup("db_1", model.BackupScheduled)
			})
			if err != nil {
				runtime.Gosched()
				continue
			}
			<-backup.Done()
			release()
			ended()
		}
	})
	for n := range 3000 {
		what := []string{"a restart", databases.Restoring, databases.Deleting}[n%3]
		release, err := e.Databases.ClaimBackups("db_1", what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			break
		}
		release()
		runtime.Gosched()
	}
	stop()
	scheduled.Wait()
	if len(e.Core.Claims.Held) > 0 || len(e.Core.Cancels.Running) > 0 {
		t.Errorf("%d claims and %d acts that can be cancelled are left", len(e.Core.Claims.Held), len(e.Core.Cancels.Running))
	}
}

// The end of an act leaves the next of its kind cancelable.
func TestNextActIsCancelable(t *testing.T) {
	t.Parallel()
	c := core.NewCancels()
	_, firstEnded := c.Add(t.Context(), "a backup")
	ctx, ended := c.Add(t.Context(), "a backup")
	firstEnded()
	go func() {
		<-ctx.Done()
		ended()
	}()
	if !c.Cancel("a backup", core.ErrUnwanted) || context.Cause(ctx) != core.ErrUnwanted {
		t.Errorf("it cannot be cancelled: %v", context.Cause(ctx))
	}
	if c.Cancel("a backup", core.ErrUnwanted) {
		t.Error("it is cancelled twice")
	}
}
