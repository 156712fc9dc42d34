package engine

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal"
	"holdfast/internal/durable/faultfs"
	"holdfast/internal/testenv"
)

// A failed sync of the WAL archive ends the receiver. A sweep and a backup each open another one, which continues.
func TestReceiverIsOpenedAnew(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	a := startEngineOn(t, testConfig(t, newDataDir(t)), func(e *Engine) {
		e.Recovery.WALFiles = &faultfs.FS{Err: syscall.EIO, Hit: func(_ int, verb, _ string) bool { return broken.Load() && verb == "syncfile" }}
	})
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t (n int)")
	sweep := func() {
		if err := a.sweepOnce(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, mend := range []func(){sweep, func() { a.backUp(t, db.ID) }} {
		run(t, c, "insert into t values (1)") // the receiver has a file: that it cannot make one is another matter
		a.awaitArchived(t, db.ID, answer[time.Time](t, c, "select clock_timestamp()"))
		broken.Store(true)
		testenv.Eventually(t, "the receiver fails", func() bool {
			run(t, c, "insert into t values (1)") // each time, because the engine itself may open another one meanwhile
			status, _ := a.Recovery.WALStatus(db.ID)
			return status.State == wal.StateFailed
		})
		broken.Store(false)
		mend()
		testenv.Eventually(t, "the receiver works", func() bool {
			status, _ := a.Recovery.WALStatus(db.ID)
			return status.Healthy() && status.Failures > 0
		})
	}
	a.awaitIdle(t)
	a.mustHaveNoGap(t, db.ID)
}
