package meta

import (
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestSamplesAreARing stores more samples than a ring holds.
func TestSamplesAreARing(t *testing.T) {
	t.Parallel()
	db := openTest(t)
	series := model.Series{Name: "s", Step: time.Minute, Keep: 5}
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 12 {
		at := begin.Add(time.Duration(i) * time.Minute)
		update(t, db, func(tx *Tx) error {
			if err := tx.PutSample("db_1", series, model.Sample{At: at, SizeBytes: -1}); err != nil {
				return err
			}
			if err := tx.PutSample("db_1", series, model.Sample{At: at, SizeBytes: int64(i)}); err != nil { // replaces the previous one
				return err
			}
			return tx.PruneSamples("db_1", series, at)
		})
	}
	update(t, db, func(tx *Tx) error { return tx.PruneSamples("db_2", series, begin) })
	want := func(database string, since time.Time, sizes ...int64) {
		t.Helper()
		view(t, db, func(tx *Tx) error {
			samples, err := tx.Samples(database, series, since)
			if len(samples) != len(sizes) {
				t.Fatalf("%d samples, want %d", len(samples), len(sizes))
			}
			for i, s := range samples {
				if s.SizeBytes != sizes[i] {
					t.Errorf("sample %d is %d, want %d", i, s.SizeBytes, sizes[i])
				}
			}
			return err
		})
	}
	want("db_1", time.Time{}, 7, 8, 9, 10, 11)
	want("db_1", begin.Add(10*time.Minute), 10, 11)
	want("db_2", time.Time{})
	update(t, db, func(tx *Tx) error { return tx.DropSamples("db_1") })
	update(t, db, func(tx *Tx) error { return tx.DropSamples("db_1") })
	want("db_1", time.Time{})
}
