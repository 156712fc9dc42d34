package engine

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Who was told that an act is done may go on, though it still tidies up.
func TestClaimThatEnds(t *testing.T) {
	t.Parallel()
	c := newClaims()
	take := func(id, what string) func() {
		t.Helper()
		release, err := c.take(id, what)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	restore, backups := take("db_1", "a restore"), take(backupClaim("db_1"), "a restore")
	if _, err := c.take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restore: %v", err)
	}
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestore})
	next := make(chan func(), 2)
	go func() { next <- take("db_1", "a restart") }()
	go func() { next <- take(backupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restore()
	backups()
	(<-next)()
	(<-next)()

	// A backup beside another act ends by itself.
	backup, restart := take(backupClaim("db_1"), "a backup"), take("db_1", "a restart")
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationRestart})
	if _, err := c.take(backupClaim("db_1"), "a backup"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a backup: %v", err)
	}
	endClaims(c, model.DatabaseOperation{Database: "db_1", Type: model.OperationBackup})
	go func() { next <- take(backupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	restart()
	backup()
	(<-next)()

	// A restore into another database holds that, and the backups of the first.
	made, backups, restart := take("db_2", "the creation"), take(backupClaim("db_1"), "a restore"), take("db_1", "a restart")
	endClaims(c, model.DatabaseOperation{Database: "db_1", NewDatabase: "db_2", Type: model.OperationRestore})
	if _, err := c.take("db_1", "a restart"); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("during a restart: %v", err)
	}
	go func() { next <- take("db_2", "a restart") }()
	go func() { next <- take(backupClaim("db_1"), "a backup") }()
	mustWait(t, next)
	made()
	backups()
	restart()
	(<-next)()
	(<-next)()
	if len(c.held) > 0 {
		t.Errorf("%d claims are left", len(c.held))
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
	release, err := a.claims.take(db.ID, "a restart")
	if err != nil {
		t.Fatal(err)
	}
	op, err := a.beginOperation(db.Database, model.OperationRestart, model.DatabaseRestarting, "restarting")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	recorded := make(chan error, 1)
	go func() {
		recorded <- a.meta.Update(func(tx *meta.Tx) error {
			tx.OnCommit(func() { <-seen })
			_, err := a.releaseDatabase(tx, op, nil)
			return err
		})
	}()
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	next := make(chan error, 1)
	go func() {
		_, err := a.claims.take(db.ID, "another restart")
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
	e := &Engine{claims: newClaims(), cancels: newCancels(), ctx: ctx}
	var scheduled sync.WaitGroup
	scheduled.Go(func() {
		for ctx.Err() == nil {
			var backup context.Context
			var ended func()
			release, err := e.claims.takeAnd(backupClaim("db_1"), backing, func() {
				backup, ended = e.cancelableBackup("db_1", model.BackupScheduled)
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
		what := []string{"a restart", restoring, deleting}[n%3]
		release, err := e.claimBackups("db_1", what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			break
		}
		release()
		runtime.Gosched()
	}
	stop()
	scheduled.Wait()
	if len(e.claims.held) > 0 || len(e.cancels.running) > 0 {
		t.Errorf("%d claims and %d acts that can be cancelled are left", len(e.claims.held), len(e.cancels.running))
	}
}

// The end of an act leaves the next of its kind cancelable.
func TestNextActIsCancelable(t *testing.T) {
	t.Parallel()
	c := newCancels()
	_, firstEnded := c.add(t.Context(), "a backup")
	ctx, ended := c.add(t.Context(), "a backup")
	firstEnded()
	go func() {
		<-ctx.Done()
		ended()
	}()
	if !c.cancel("a backup", errUnwanted) || context.Cause(ctx) != errUnwanted {
		t.Errorf("it cannot be cancelled: %v", context.Cause(ctx))
	}
	if c.cancel("a backup", errUnwanted) {
		t.Error("it is cancelled twice")
	}
}
