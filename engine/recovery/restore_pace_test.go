package recovery

import (
	"math"
	"testing"
	"time"

	"holdfast/backup"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/model"
)

// TestPace: estimates follow from measurements, and there is none where these do not suffice.
func TestPace(t *testing.T) {
	t.Parallel()
	plan := func(files, log int64) RestorePlan {
		return RestorePlan{Backup: model.Backup{SizeBytes: files}, Plan: backup.Plan{Start: 1, Target: wal.Point{End: xlog.LSN(1 + log)}}}
	}
	const mib, gib = 1 << 20, 1 << 30
	took := func(files, log int64) (unpack, rest time.Duration) { // 100 MiB/s; 3 s and 50 MiB/s
		return time.Duration(float64(files) / (100 * mib) * 1e9), time.Duration((3 + float64(log)/(50*mib)) * 1e9)
	}
	var one, many, empty restorePace
	note := func(r *restorePace, files, log int64) {
		unpack, rest := took(files, log)
		r.Unpack, r.Rest = r.Unpack.with(files, unpack), r.Rest.with(log, rest)
	}
	note(&one, gib, mib)
	for n := range int64(20) {
		note(&many, (n+1)*100*mib, n%7*200*mib)
	}
	for n := range int64(2) { // how long verifications of empty databases take does not come from their WAL
		empty.Unpack = empty.Unpack.with(100*mib, time.Second)
		empty.Rest = empty.Rest.with(16<<10+n*30<<10, 3*time.Second+time.Duration(n)*600*time.Millisecond)
	}
	for _, test := range []struct {
		name       string
		of         restorePace
		files, log int64
		known      bool
	}{
		{"nothing measured", restorePace{}, gib, mib, false},
		{"one run, and as much WAL", one, 10 * gib, mib, true},
		{"one run, and far more WAL", one, gib, 4 * gib, false},
		{"many runs, and far more WAL", many, 10 * gib, 4 * gib, true},
		{"many runs, and none", many, gib, 0, true},
		{"runs of hardly any WAL, and a segment", empty, gib, 16 * mib, true},
		{"runs of hardly any WAL, and far more", empty, gib, 4 * gib, false},
	} {
		about := test.of.estimate(plan(test.files, test.log))
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
