package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// victims are the processes that a crash kills: the appliance, the postmasters,
// or both.
type victims struct{ appliance, postmasters bool }

var allVictims = []victims{{appliance: true}, {postmasters: true}, {true, true}}

// crash kills them with SIGKILL and starts the appliance if it was killed.
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
	testenv.Eventually(m.t, "an answer", func() bool {
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

// The moments of a restore are its phases and its end.
var (
	restoreMoments = []string{"checking", "restoring", "recovering", "switching", "completed"}
	undoMoments    = []string{"recovering", "switching", "completed"}
)

// awaitMoment waits until the newest operation on a database has reached or
// passed a moment: some are short.
func (m *machine) awaitMoment(database string, moments []string, moment string) {
	m.t.Helper()
	m.awaitMomentWithin(time.Minute, database, moments, moment)
}

func (m *machine) awaitMomentWithin(limit time.Duration, database string, moments []string, moment string) {
	m.t.Helper()
	testenv.Catch(m.t, limit, "the moment "+moment, func() bool {
		var recovery wire.Recovery
		m.must("GET", "/databases/"+database+"/recovery", nil, &recovery)
		op := recovery.Operations[0]
		now := string(op.Status)
		if op.Status == "running" && op.Phase != nil {
			now = *op.Phase
		}
		if now == "failed" {
			m.t.Fatalf("the operation failed: %s", *op.Error)
		}
		return slices.Index(moments, now) >= slices.Index(moments, moment)
	})
}

// TestKillDuringRestore kills the appliance, the postmasters, or both at every
// moment of a restore and an undo. The result is the data from before or the
// data from after.
func TestKillDuringRestore(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.start()
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	fill(t, url)
	then := query(t, url, checksum)
	b := m.backup(db.ID)
	query(t, url, "delete from accounts where aid % 2 = 0")
	now := query(t, url, checksum)
	restore, undo := "/databases/"+db.ID+"/backups/"+b.ID+"/restore", "/databases/"+db.ID+"/recovery/undo"
	begin := func(path string) { // an automatic backup may be running
		testenv.Eventually(t, path, func() bool {
			status, _ := m.do("POST", path, nil)
			return status == 200
		})
	}
	for n, moment := range restoreMoments {
		begin(restore)
		m.awaitMoment(db.ID, restoreMoments, moment)
		m.crash(allVictims[n%len(allVictims)])
		m.awaitAnswer(db.ID, url)
		switch got := query(t, url, checksum); {
		case got == now && moment != "completed":
		case got == then: // the restore was complete
			query(t, url, "delete from accounts where aid % 2 = 0")
		default:
			t.Errorf("killed when it was %s: %s is neither before nor after", moment, got)
		}
		testenv.Eventually(t, "two data directories at most", func() bool { return m.generations(db.ID) <= 2 })
	}
	begin(restore)
	m.awaitAvailable(db.ID)
	if got := query(t, url, checksum); got != then {
		t.Errorf("restored %s, not %s", got, then)
	}
	for n, moment := range undoMoments {
		before := query(t, url, checksum)
		begin(undo)
		m.awaitMoment(db.ID, undoMoments, moment)
		m.crash(allVictims[n%len(allVictims)])
		m.awaitAnswer(db.ID, url)
		got := query(t, url, checksum)
		if got != now && got != then || moment == "completed" && got == before {
			t.Errorf("killed when it was %s: %s is not what is before or after the undo", moment, got)
		}
		testenv.Eventually(t, "two data directories", func() bool { return m.generations(db.ID) == 2 })
	}
}
