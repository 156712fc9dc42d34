package engine

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestSleepOnAFullDisk: on a disk that is nearly full a database stays awake, because its server might not start again.
func TestSleepOnAFullDisk(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	a.letSleep(t, db.ID, databases.MinSleepAfter)
	run(t, c, "select 1")
	a.Core.Space.MeasureWith(func() (int64, error) { return core.MinFreeSpace, nil })
	a.edit(t, db.ID, func(d *model.Database) { d.SleepAfter = time.Millisecond })
	began := time.Now()
	testenv.Eventually(t, "some looks for idle databases", func() bool {
		return time.Since(began) > 4*time.Second || a.Databases.IsAsleep(db.ID)
	})
	if a.Databases.IsAsleep(db.ID) {
		t.Error("it fell asleep")
	}
	a.Core.Space.MeasureWith(nil)
	a.awaitSleep(t, db.ID)
}
