package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/engine/model"
)

// BenchmarkDatabaseCreate measures the creation of databases while spares
// last, which is how people create them.
func BenchmarkDatabaseCreate(b *testing.B) {
	a := startEngine(b)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		eventually(b, "a spare", func() bool { return a.spares.Ready() > 0 })
		b.StartTimer()
		began := time.Now()
		db, _ := a.createDatabase(b, fmt.Sprintf("d%d", len(took)))
		took = append(took, time.Since(began))
		b.StopTimer()
		if _, err := a.DatabaseDelete(b.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
			b.Fatal(err)
		}
		if _, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Milliseconds()), "p95-ms")
}
