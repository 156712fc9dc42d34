package engine

import (
	"math"
	"testing"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// TestPace: an estimate follows from what was measured, and where that does not
// say, there is none.
func TestPace(t *testing.T) {
	t.Parallel()
	plan := func(files, log int64) recovery.RestorePlan {
		return recovery.RestorePlan{Backup: model.Backup{SizeBytes: files}, Plan: backup.Plan{Start: 1, Target: wal.Point{End: xlog.LSN(1 + log)}}}
	}
	const mib, gib = 1 << 20, 1 << 30
	took := func(files, log int64) (unpack, rest time.Duration) { // 100 MiB/s; 3 s and 50 MiB/s
		return time.Duration(float64(files) / (100 * mib) * 1e9), time.Duration((3 + float64(log)/(50*mib)) * 1e9)
	}
	var one, many recovery.RestorePace
	note := func(r *recovery.RestorePace, files, log int64) {
		unpack, rest := took(files, log)
		r.Unpack, r.Rest = r.Unpack.With(files, unpack), r.Rest.With(log, rest)
	}
	note(&one, gib, mib)
	for n := range int64(20) {
		note(&many, (n+1)*100*mib, n%7*200*mib)
	}
	for _, test := range []struct {
		name       string
		of         recovery.RestorePace
		files, log int64
		known      bool
	}{
		{"nothing measured", recovery.RestorePace{}, gib, mib, false},
		{"one run, and as much WAL", one, 10 * gib, mib, true},
		{"one run, and far more WAL", one, gib, 4 * gib, false},
		{"many runs, and far more WAL", many, 10 * gib, 4 * gib, true},
		{"many runs, and none", many, gib, 0, true},
	} {
		about := test.of.Of(plan(test.files, test.log))
		if (about != nil) != test.known {
			t.Errorf("%s: %v", test.name, about)
			continue
		}
		unpack, rest := took(test.files, test.log)
		if want := (unpack + rest).Seconds(); test.known && math.Abs(about.Seconds()-want) > 0.1*want {
			t.Errorf("%s: %v, and it takes %.1f s", test.name, about, want)
		}
	}
}

// TestEstimate: a plan has an estimate once something was restored on this
// machine, be it for a verification, and it outlives the process.
func TestEstimate(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, md5(n::text) as text from generate_series(1, 200000) n")
	b := a.backUp(t, db.ID)
	plan := func() recovery.RestorePlan {
		t.Helper()
		p, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: *b.CompletedAt})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := plan(); p.Estimated != nil {
		t.Errorf("nothing was restored here, and it is said to take %v", p.Estimated)
	}
	if _, err := a.Recovery.Prove(t.Context(), db.Database, b); err != nil {
		t.Fatal(err)
	}
	if p := plan(); p.Estimated == nil || *p.Estimated <= 0 {
		t.Errorf("after a verification: %v", p.Estimated)
	}
	op, err := a.Recovery.RecoveryRestore(a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: *b.CompletedAt})
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.settled(t)
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
