package engine

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

// BenchmarkImportPause measures the write pause of cutovers, from the request until the new database accepts clients,
// with a source of pgbench's tables that a writer has changed until then:
//
//	go test ./engine -run '^$' -bench ImportPause -benchtime 10x -args -scale 50
//
// It reports the median and the range, in seconds.
func BenchmarkImportPause(b *testing.B) {
	o := newRunning(b, postgrestest.Binaries(b), running)
	port := strconv.Itoa(o.Spec.Config.Port)
	owner := o.Tenant.Owner
	b.Setenv("PGPASSWORD", o.Tenant.OwnerPassword.Reveal())
	tool(b, o.Spec.Bin.Dir, "pgbench", "-h", "127.0.0.1", "-p", port, "-U", owner, "-i", "-q", "-s", strconv.Itoa(*scale), "app")
	if _, err := o.Superuser(b, "app").Exec(b.Context(), "alter table public.pgbench_history replica identity full"); err != nil {
		b.Fatal(err)
	}
	a := startMajors(b)
	var pauses []float64
	for b.Loop() {
		w := o.write(b)
		record := a.follow(b, o, "18")
		before := w.count()
		testenv.Within(b, time.Minute, "changes that follow", func() bool { return w.count() > before+500 })
		w.end()
		record, err := a.cutOver(b, record.ID)
		if err != nil {
			b.Fatal(err)
		}
		pauses = append(pauses, record.Follow.Pause.Seconds())
		a.awaitIdle(b)
		a.discard(b, record.Database)
	}
	b.ReportMetric(rounds.Median(pauses), "s/pause")
	b.ReportMetric(slices.Min(pauses), "s/least")
	b.ReportMetric(slices.Max(pauses), "s/most")
}
