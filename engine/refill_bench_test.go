package engine

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/internal/testenv"
)

// BenchmarkRefill measures how filling the warm pool affects another database's commits: the latency of single-row
// updates while the pool is full, and while it refills.
func BenchmarkRefill(b *testing.B) {
	a := startEngine(b)
	_, c := a.createDatabase(b, "busy")
	run(b, c, "create table t as select n, 0 as v from generate_series(1, 1000) n")
	run(b, c, "alter table t add primary key (n)")
	full := a.Databases.WarmPoolReady
	var quiet, refilling []time.Duration
	created := 0
	for b.Loop() {
		b.StopTimer()
		testenv.Eventually(b, "a full pool", full)
		b.StartTimer()
		quiet = append(quiet, updates(b, c, func(began time.Time) bool { return time.Since(began) < 2*time.Second })...)
		b.StopTimer()
		for range a.cfg.Warm {
			a.createDatabase(b, fmt.Sprintf("d%d", created))
			created++
		}
		b.StartTimer()
		refilling = append(refilling, updates(b, c, func(time.Time) bool { return !full() })...)
	}
	for name, took := range map[string][]time.Duration{"quiet": quiet, "refilling": refilling} {
		p50, p95 := percentiles(took)
		b.ReportMetric(p50, name+"-p50-ms")
		b.ReportMetric(p95, name+"-p95-ms")
	}
}

// updates commits single-row updates, one after the other, while goOn returns true, and returns their durations.
func updates(b *testing.B, c databases.Connection, goOn func(began time.Time) bool) (took []time.Duration) {
	b.Helper()
	conn := connect(b, c)
	for started := time.Now(); goOn(started); {
		began := time.Now()
		if _, err := conn.Exec(b.Context(), "update t set v = v + 1 where n = 1 + $1 % 1000", len(took)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	if len(took) == 0 {
		b.Fatal("the pool was full before the first update")
	}
	return took
}
