package offsite_test

import (
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// TestPointWithoutBackup: while the copy has no backup of a database, its WAL there rebuilds nothing. The recovery point waits.
func TestPointWithoutBackup(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	db, _ := m.createDatabase("shop")
	m.backUp(db.ID)
	passes := func(moment time.Time) bool {
		st := m.Offsite.Status()
		of, ok := st.Of(db.ID)
		return ok && st.Point.After(moment) && of.Point.After(moment) && st.Lag < time.Second
	}
	testenv.Eventually(t, "the point to pass the backup", func() bool { return passes(time.Now().Add(-2 * time.Second)) })

	testenv.Eventually(t, "the point to wait", func() bool {
		m.Offsite.ForgetBackups(db.ID) // again, if it was just being looked at
		before := m.Offsite.Status()
		time.Sleep(300 * time.Millisecond) // the age that the status must show
		after := m.Offsite.Status()
		of, _ := after.Of(db.ID)
		return after.Point.Equal(*before.Point) && after.Lag >= before.Lag+300*time.Millisecond && !of.Point.After(db.CreatedAt)
	})

	m.backUp(db.ID)
	deleted, _ := m.createDatabase("deleted")
	m.backUp(deleted.ID)
	if _, err := m.Databases.Delete(t.Context(), m.call(model.ActionDatabaseDelete), deleted.ID); err != nil {
		t.Fatal(err)
	}
	m.Offsite.ForgetBackups(deleted.ID)
	moment := time.Now()
	testenv.Eventually(t, "the point to go on", func() bool { return passes(moment) })
}
