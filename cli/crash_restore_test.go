package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// victims are what a crash takes: the appliance, the postmasters, or both.
type victims struct{ appliance, postmasters bool }

var allVictims = []victims{{appliance: true}, {postmasters: true}, {true, true}}

// crash ends them by SIGKILL and starts what does not come back by itself.
func (m *machine) crash(who victims) {
	m.t.Helper()
	if who.postmasters {
		for _, pid := range m.processes() {
			command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && bytes.Contains(command, []byte("/instances/")) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	if who.appliance {
		m.kill()
		m.start()
	}
}

// awaitAnswer waits until a database is available and has noticed the death of
// its postmaster.
func (m *machine) awaitAnswer(id, url string) {
	m.t.Helper()
	m.awaitAvailable(id)
	eventually(m.t, "an answer", func() bool {
		conn, err := pgx.Connect(m.t.Context(), url)
		if err == nil {
			_, err = conn.Exec(m.t.Context(), "select 1")
			_ = conn.Close(m.t.Context())
		}
		return err == nil
	})
	m.awaitAvailable(id)
}

func (m *machine) generations(database string) int {
	m.t.Helper()
	dirs, err := os.ReadDir(filepath.Join(m.dataDir, "instances", database))
	if err != nil {
		m.t.Fatal(err)
	}
	return len(dirs)
}

// A restore, and an undo, that end at any moment with the appliance, the
// postmasters, or both, leave what was before or what comes after.
func TestKillDuringRestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	fill(t, url)
	then := query(t, url, checksum)
	b := m.backup(db.ID)
	query(t, url, "delete from accounts where aid % 2 = 0")
	now := query(t, url, checksum)
	restore, undo := "/databases/"+db.ID+"/backups/"+b.ID+"/restore", "/databases/"+db.ID+"/recovery/undo"
	delays := []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond}
	for n, delay := range delays {
		m.must("POST", restore, nil, nil)
		time.Sleep(delay) // the moment of death
		m.crash(allVictims[n%len(allVictims)])
		m.awaitAnswer(db.ID, url)
		switch got := query(t, url, checksum); got {
		case now:
		case then: // the restore was through
			query(t, url, "delete from accounts where aid % 2 = 0")
		default:
			t.Errorf("killed after %s: %s is neither before nor after", delay, got)
		}
		eventually(t, "two data directories at most", func() bool { return m.generations(db.ID) <= 2 })
	}
	eventually(t, "a restore", func() bool { // an automatic backup may be under way
		status, _ := m.do("POST", restore, nil)
		return status == 200
	})
	m.awaitAvailable(db.ID)
	if got := query(t, url, checksum); got != then {
		t.Errorf("restored %s, not %s", got, then)
	}
	for n, delay := range []time.Duration{0, 80 * time.Millisecond, 160 * time.Millisecond, 300 * time.Millisecond} {
		eventually(t, "an undo", func() bool {
			status, _ := m.do("POST", undo, nil)
			return status == 200
		})
		time.Sleep(delay) // the moment of death
		m.crash(allVictims[n%len(allVictims)])
		m.awaitAnswer(db.ID, url)
		if got := query(t, url, checksum); got != now && got != then {
			t.Errorf("killed after %s: %s is neither before nor after the undo", delay, got)
		}
		eventually(t, "two data directories", func() bool { return m.generations(db.ID) == 2 })
	}
}
