package offsite_test

import (
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

// TestPointBeforeWhatIsMissing: a server acknowledges commits a moment before its archive has them. While the store is not there,
// the recovery point does not pass the first of them, whatever else has come to the archive since.
func TestPointBeforeWhatIsMissing(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	db, c := m.createDatabase("shop")
	m.backUp(db.ID)
	store := strings.TrimPrefix(m.at.URL, "file://")
	conns := make([]*pgx.Conn, 4)
	for i := range conns {
		var err error
		if conns[i], err = pgx.Connect(t.Context(), c.URL()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close(t.Context())
	}
	commit := func(conn *pgx.Conn) {
		if _, err := conn.Exec(t.Context(), "select pg_logical_emit_message(true, 'test', 'a commit')"); err != nil {
			t.Error(err)
		}
	}
	for range 10 {
		began := time.Now()
		testenv.Eventually(t, "the copy to have everything", func() bool { return m.Offsite.Status().Point.After(began) })
		if err := os.Rename(store, store+".away"); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		commit(conns[0])
		first := time.Now()
		for _, conn := range conns {
			all.Go(func() {
				for time.Since(first) < 200*time.Millisecond { // for so long nothing can be copied
					commit(conn)
					if st := m.Offsite.Status(); st.Point != nil && st.Point.After(first) {
						t.Errorf("what was committed %s ago is not copied, and the point is %s after it", time.Since(first), st.Point.Sub(first))
						return
					}
				}
			})
		}
		all.Wait()
		if err := os.Rename(store+".away", store); err != nil {
			t.Fatal(err)
		}
	}
}
