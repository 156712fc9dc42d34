package engine

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// A scheduled backup gives way to a user's request, whenever it starts.
func TestScheduledBackupGivesWayWheneverItBegins(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	c := &core.Core{Claims: core.NewClaims(), Lifetime: ctx}
	d := databases.New(c)
	e := &Engine{Core: c, Databases: d, Recovery: recovery.New(c, d)}
	var scheduled sync.WaitGroup
	scheduled.Go(func() {
		for ctx.Err() == nil {
			var backup context.Context
			var ended func()
			release, err := e.Core.Claims.TakeAnd(databases.BackupClaim("db_1"), recovery.BackupClaim, false, func() {
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
		what := []string{"a restart", databases.Restoring, "the deletion"}[n%3]
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
	if len(e.Core.Claims.UnderWay()) > 0 || e.Core.Cancels.Count() > 0 {
		t.Errorf("%d claims and %d acts that can be cancelled are left", len(e.Core.Claims.UnderWay()), e.Core.Cancels.Count())
	}
}

// The end of an operation leaves the next one of its kind cancelable.
func TestNextActIsCancelable(t *testing.T) {
	t.Parallel()
	c := new(core.Cancels)
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
