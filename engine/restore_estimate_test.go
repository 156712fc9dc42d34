package engine

import (
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// TestEstimate: a plan has an estimate once this machine has restored a backup, even just for a verification, and the
// measurements survive the process.
func TestEstimate(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, md5(n::text) as text from generate_series(1, 200000) n")
	b := a.backUp(t, db.ID)
	plan := func() recovery.RestorePlan {
		t.Helper()
		p, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: *b.CompletedAt}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := plan(); p.Estimated != nil {
		t.Errorf("nothing was restored here, and it is said to take %v", p.Estimated)
	}
	if _, err := a.Recovery.Verify(t.Context(), db.Database, b); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Estimated == nil || *p.Estimated <= 0 {
		t.Errorf("after a verification: %v", p.Estimated)
	}
	op, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: *b.CompletedAt}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.awaitIdle(t)
	ended := a.operations(t, db.ID)
	took := time.Duration(0)
	for _, o := range ended {
		if o.ID == op.ID {
			took = o.CompletedAt.Sub(o.StartedAt)
		}
	}
	a.abandon(t)
	a = a.reopen(t)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	if p := plan(); p.Estimated == nil || *p.Estimated < took/3 || *p.Estimated > took*3 {
		t.Errorf("after a restore that took %v: %v", took, p.Estimated)
	}
}
