package cli_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// begin asks for something that becomes an operation or a backup, and returns
// its id; "" when it was refused because there is no room.
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
	if status != http.StatusForbidden && status != http.StatusConflict {
		m.t.Errorf("POST %s: %d %+v", path, status, e.Error)
	}
	return ""
}

// ended waits for the end of the database's operations, and says how each
// ended: "completed", or its error.
func (m *machine) ended(database, id string) string {
	m.t.Helper()
	type operation struct {
		ID, Status string
		Error      *string `json:"error"`
	}
	var found operation
	eventually(m.t, "the end of an operation", func() bool {
		var recovery struct{ Operations []operation }
		m.must("GET", "/databases/"+database+"/recovery", nil, &recovery)
		for _, op := range recovery.Operations {
			if op.ID == id {
				found = op
			}
		}
		return found.Status == "completed" || found.Status == "failed"
	})
	if found.Error != nil {
		return *found.Error
	}
	return found.Status
}

// The disk is full in the middle of a backup, a restore, an undo, and a delete
// of a backup: each says so or is through, the database is as it was, and with
// room everything goes on.
func TestDiskFullDuringBackups(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	fill, empty := m.smallDisk("850")
	m.start()
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

	// A backup. Of one that reads everything something is written at once.
	id := m.begin(path + "/backups")
	fill()
	if id != "" {
		var b backupRecord
		eventually(t, "the end of the backup", func() bool {
			m.must("GET", path+"/backups/"+id, nil, &b)
			return b.Status == "completed" || b.Status == "failed"
		})
		if b.Error != nil {
			full("the backup", *b.Error)
		}
	}
	empty()
	expect("after a backup on a full disk", now)

	// A restore: full as soon as it has begun to write.
	eventually(t, "a restore", func() bool { id = m.begin(path + "/backups/" + first.ID + "/restore"); return id != "" })
	eventually(t, "the beginning of the restore", func() bool {
		_, err := os.Stat(filepath.Join(m.dataDir, "instances", shop.ID, "2", "base"))
		return err == nil
	})
	fill()
	end := m.ended(shop.ID, id)
	full("the restore", end)
	empty()
	if end == "completed" {
		t.Error("the restore went through: the disk was not full in the middle of it")
	}
	expect("after a restore on a full disk", now)
	if n := m.generations(shop.ID); n != 1 {
		t.Errorf("%d data directories are left", n)
	}

	// With room it goes, and is undone; of the undo on a full disk it is not known
	// whether it needs any.
	eventually(t, "a restore with room", func() bool { id = m.begin(path + "/backups/" + first.ID + "/restore"); return id != "" })
	if end := m.ended(shop.ID, id); end != "completed" {
		t.Fatalf("the restore with room: %s", end)
	}
	expect("after the restore", then)
	want := then
	fill()
	if id = m.begin(path + "/recovery/undo"); id != "" {
		end := m.ended(shop.ID, id)
		if end == "completed" {
			want = now
		} else {
			full("the undo", end)
		}
	}
	empty()
	expect("after an undo on a full disk", want)

	// A delete, of which what is needed by nobody goes when there is room at the
	// latest.
	fill()
	status, e := m.do("DELETE", path+"/backups/"+first.ID, nil)
	if status != http.StatusOK && status != http.StatusForbidden && status != http.StatusConflict {
		t.Errorf("delete of a backup: %d %+v", status, e.Error)
	}
	empty()
	expect("after a delete on a full disk", want)
	m.stop()
	m.start()
	m.awaitAvailable(shop.ID)
	m.backup(shop.ID)
	var list []backupRecord
	m.must("GET", path+"/backups", nil, &list)
	completed := 0
	for _, b := range list {
		if b.Status == "completed" {
			completed++
		}
	}
	if kept := m.manifests(shop.ID); kept != completed {
		t.Errorf("%d backups are completed, %d are kept", completed, kept)
	}
	if report, code := verifyVault(t, filepath.Join(m.dataDir, "backups", shop.ID)); code != 0 || len(report.Damage) > 0 {
		t.Errorf("verify: code %d, %+v", code, report)
	}
}
