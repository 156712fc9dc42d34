package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
)

// The appliance is killed while a client wakes a database: as soon as the client has connected, and once the server is
// being started. Each time the next appliance has everything, one server and no stray process, and the database falls
// asleep again.
func TestKilledWhileWaking(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.start("--backup-interval", "0")
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	var made struct {
		ID          string
		Credentials struct {
			URL string `json:"connection_url"`
		}
	}
	m.must("POST", "/databases", map[string]any{"name": "shop", "project": m.project(), "sleep_after_seconds": 10}, &made)
	url := made.Credentials.URL
	query(t, url, "create table t (n int)")
	pid := filepath.Join(m.dataDir, "instances", made.ID, "1", "postmaster.pid")
	starting := func() bool {
		_, err := os.Stat(pid)
		return err == nil
	}
	for n, due := range []func() bool{func() bool { return true }, starting} {
		testenv.Eventually(t, "sleep", func() bool {
			var db struct{ Asleep bool }
			m.must("GET", "/databases/"+made.ID, nil, &db)
			return db.Asleep && !starting() // its server has stopped
		})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if conn, err := pgx.Connect(context.Background(), url); err == nil {
				_ = conn.Close(context.Background())
			}
		}()
		testenv.Catch(t, time.Minute, "the moment to die", due)
		m.kill()
		<-ended
		m.start("--backup-interval", "0")
		m.awaitAnswer(made.ID, url)
		query(t, url, fmt.Sprintf("insert into t values (%d)", n))
		if rows := query(t, url, "select count(*) from t"); rows != fmt.Sprint(n+1) {
			t.Errorf("%s rows after %d kills", rows, n+1)
		}
		if servers := m.postmasters(); len(servers) != 1 {
			t.Errorf("postmasters %v, want one", servers)
		}
	}
}
