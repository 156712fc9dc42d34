package cli_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// begin requests an operation or a backup, and returns its id; "" if it was
// refused because the disk is full.
func (m *machine) begin(path string) (id string) {
	m.t.Helper()
	status, e := m.do("POST", path, nil)
	var begun struct{ ID string }
	if status == http.StatusOK {
		if err := json.Unmarshal(e.Data, &begun); err != nil {
			m.t.Fatal(err)
		}
		return begun.ID
	}
	if status != http.StatusInsufficientStorage && status != http.StatusConflict {
		m.t.Errorf("POST %s: %d %+v", path, status, e.Error)
	}
	return ""
}

// ended waits for the end of the database's operations, and returns how the
// operation ended: "completed", or its error.
func (m *machine) ended(database, id string) string {
	m.t.Helper()
	var found operation
	testenv.Eventually(m.t, "the end of an operation", func() bool {
		found = m.operation(database, id)
		return found.over()
	})
	if found.Error != nil {
		return *found.Error
	}
	return found.Status
}

func (o operation) over() bool { return o.Status == "completed" || o.Status == "failed" }

// operation returns one of the database's operations, or the zero value.
func (m *machine) operation(database, id string) (found operation) {
	m.t.Helper()
	var recovery struct{ Operations []operation }
	m.must("GET", "/databases/"+database+"/recovery", nil, &recovery)
	for _, op := range recovery.Operations {
		if op.ID == id {
			found = op
		}
	}
	return found
}

// linger keeps the disk full for a while, until over: an operation's end may be
// recorded only when there is space again.
func linger(over func() bool) {
	for began := time.Now(); !over() && time.Since(began) < 5*time.Second; {
		time.Sleep(20 * time.Millisecond)
	}
}

// TestDiskFullDuringBackups fills the disk during a backup, a restore, an undo
// and a deletion of a backup. Each fails with a message or completes, the
// database is unchanged, and with free space everything continues.
func TestDiskFullDuringBackups(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	fill, empty := m.smallDisk("950")
	m.start()
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	shop := m.createDatabase("shop")
	url := m.connectionURL(shop.ID)
	query(t, url, "create table kept as select n, repeat(md5(n::text), 8) as text from generate_series(1, 300000) n")
	const rows = "select count(*) || ' ' || sum(hashtext(text)::bigint) from kept"
	then := query(t, url, rows)
	path := "/databases/" + shop.ID
	first := m.backup(shop.ID)
	query(t, url, "delete from kept where n % 3 = 0")
	now := query(t, url, rows)

	expect := func(when, want string) {
		t.Helper()
		m.awaitAnswer(shop.ID, url)
		if got := query(t, url, rows); got != want {
			t.Errorf("%s: %s, not %s", when, got, want)
		}
	}
	full := func(when, end string) {
		t.Helper()
		if end != "completed" && !strings.Contains(end, "no space left") && !strings.Contains(end, "disk is full") && !strings.Contains(end, "No space left") {
			t.Errorf("%s ended with %q", when, end)
		}
	}

	// A backup. It writes at once, even if it reads the whole database.
	id := m.begin(path + "/backups")
	fill()
	var b backupRecord
	backedUp := func() bool {
		m.must("GET", path+"/backups/"+id, nil, &b)
		return b.Status == "completed" || b.Status == "failed"
	}
	if id != "" {
		linger(backedUp)
	}
	empty()
	if id != "" {
		testenv.Eventually(t, "the end of the backup", backedUp)
		if b.Error != nil {
			full("the backup", *b.Error)
		}
	}
	expect("after a backup on a full disk", now)

	// A restore: the disk is filled as soon as it starts to write, however
	// quick it is.
	if id = m.begin(path + "/backups/" + first.ID + "/restore"); id == "" {
		t.Fatal("a restore was refused")
	}
	testenv.Catch(t, time.Minute, "the beginning of the restore", func() bool {
		_, err := os.Stat(filepath.Join(m.dataDir, "instances", shop.ID, "2", "base"))
		return err == nil
	})
	stop := m.process.Process.Signal(syscall.SIGSTOP)
	fill()
	if err := errors.Join(stop, m.process.Process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	linger(func() bool { return m.operation(shop.ID, id).over() })
	empty()
	end := m.ended(shop.ID, id)
	full("the restore", end)
	if end == "completed" {
		t.Error("the restore went through: the disk was not full in the middle of it")
	}
	expect("after a restore on a full disk", now)
	if n := m.generations(shop.ID); n != 1 {
		t.Errorf("%d data directories are left", n)
	}

	// With free space it completes and is undone; whether the undo needs space is
	// unknown.
	if id = m.begin(path + "/backups/" + first.ID + "/restore"); id == "" {
		t.Fatal("a restore with room was refused")
	}
	if end := m.ended(shop.ID, id); end != "completed" {
		t.Fatalf("the restore with room: %s", end)
	}
	expect("after the restore", then)
	want := then
	fill()
	if id = m.begin(path + "/recovery/undo"); id != "" {
		linger(func() bool { return m.operation(shop.ID, id).over() })
	}
	empty()
	if id != "" {
		if end := m.ended(shop.ID, id); end == "completed" {
			want = now
		} else {
			full("the undo", end)
		}
	}
	expect("after an undo on a full disk", want)

	// A deletion, which removes unneeded data at the latest when there is space.
	fill()
	status, e := m.do("DELETE", path+"/backups/"+first.ID, nil)
	if status != http.StatusOK && status != http.StatusInsufficientStorage && status != http.StatusConflict {
		t.Errorf("delete of a backup: %d %+v", status, e.Error)
	}
	empty()
	expect("after a delete on a full disk", want)
	m.stop()
	m.start()
	m.awaitAvailable(shop.ID)
	testenv.Eventually(t, "a backup beside the appliance's own", func() bool {
		status, e := m.do("POST", path+"/backups", nil)
		if status == http.StatusConflict {
			return false
		}
		var b backupRecord
		if err := json.Unmarshal(e.Data, &b); err != nil || status != http.StatusOK {
			t.Fatalf("%d %+v, %v", status, e.Error, err)
		}
		m.completed(shop.ID, b.ID)
		return true
	})
	testenv.Eventually(t, "as many backups as are recorded", func() bool {
		var list []backupRecord
		m.must("GET", path+"/backups", nil, &list)
		completed := 0
		for _, b := range list {
			switch b.Status {
			case "completed":
				completed++
			case "pending", "running":
				return false
			}
		}
		return m.manifests(shop.ID) == completed
	})
	if report, code := verifyVault(t, filepath.Join(m.dataDir, "backups", shop.ID)); code != 0 || len(report.Damage) > 0 {
		t.Errorf("verify: code %d, %+v", code, report)
	}
}
