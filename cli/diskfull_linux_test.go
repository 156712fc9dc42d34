package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// smallDisk puts the machine's data directory on its own file system, which
// needs root; fill fills it to the last byte, and empty frees the space.
func (m *machine) smallDisk(megabytes string) (fill, empty func()) {
	m.t.Helper()
	if os.Geteuid() != 0 {
		m.t.Skip("only root can mount the small file system this test needs")
	}
	disk := filepath.Join(filepath.Dir(m.dataDir), "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "mode=755,size="+megabytes+"m"); err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
			m.t.Skipf("root may not mount a file system here: %v", err)
		}
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		m.stop()
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			m.t.Error(err)
		}
	})
	return m.onDisk(disk)
}

// onDisk moves the machine's data directory, which does not exist yet, to a file system.
func (m *machine) onDisk(disk string) (fill, empty func()) {
	m.dataDir = filepath.Join(disk, "data")
	ballast := filepath.Join(disk, "ballast")
	return func() {
			f, err := os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				m.t.Fatal(err)
			}
			defer f.Close()
			for size := 1 << 20; size > 0; {
				if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
					size /= 2
				} else if err != nil {
					m.t.Fatal(err)
				}
			}
		}, func() {
			if err := os.Remove(ballast); err != nil {
				m.t.Fatal(err)
			}
		}
}

// TestDiskFull checks that a full disk stops only what needs space, with a
// message, and that everything recovers by itself once there is space.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	fill, empty := m.smallDisk("400")
	m.start()
	shop, other := m.createDatabase("shop"), m.createDatabase("other")
	shopURL, otherURL := m.connectionURL(shop.ID), m.connectionURL(other.ID)
	query(t, shopURL, "create table kept as select generate_series(1, 1000) n")
	query(t, otherURL, "create table kept as select 7 n")
	bucket := m.createBucket("files")
	objects := "/buckets/" + bucket + "/objects"
	m.must("POST", objects+"?key=before", strings.NewReader("before"), nil)

	// A process that dies, such as the server or initdb, frees some space, with
	// which the server may restart, until none is left.
	testenv.Eventually(t, "the end of the database", func() bool {
		fill()
		exhaust(t, shopURL)
		status, reason := m.statusOf(shop.ID)
		return status == "failed" && strings.Contains(reason, "disk is full")
	})
	fill()

	// Whatever needs no space continues.
	if n := query(t, otherURL, "select n from kept"); n != "7" {
		t.Errorf("the other database answers %s", n)
	}
	for _, path := range []string{"/databases", "/databases/" + shop.ID, objects, "/agent/status", "/agent/recommendations", "/account/audit-logs"} {
		if status, e := m.do("GET", path, nil); status != http.StatusOK {
			t.Errorf("GET %s: %d %+v", path, status, e.Error)
		}
	}
	// The rest is refused with a message.
	refused := func(method, path string, body any) {
		t.Helper()
		status, e := m.do(method, path, body)
		if status != http.StatusInsufficientStorage && status != http.StatusConflict {
			t.Errorf("%s %s: %d %+v", method, path, status, e.Error)
		} else if !strings.Contains(e.Error.Message, "disk is full") {
			t.Errorf("%s %s does not say that the disk is full: %s", method, path, e.Error.Message)
		}
	}
	refused("POST", objects+"?key=big", strings.NewReader(strings.Repeat("x", 8<<20)))
	refused("POST", "/databases", map[string]any{"project": m.project(), "name": "third"})
	refused("POST", "/databases", map[string]any{"project": m.project(), "name": "fourth"})
	refused("POST", "/databases/"+shop.ID+"/restart", nil)
	// Small changes may still find space, but must not return a 500.
	for _, change := range []struct {
		method, path string
		body         any
	}{
		{"POST", objects + "?key=small", strings.NewReader("small")},
		{"POST", "/buckets", map[string]any{"project": m.project(), "name": "more"}},
		{"POST", "/databases/" + other.ID + "/rotate-password", nil},
		{"PUT", "/databases/" + other.ID + "/allowlist", map[string]any{"entries": []string{"127.0.0.0/8"}}},
		{"POST", "/databases/" + other.ID + "/backups", nil},
	} {
		if status, e := m.do(change.method, change.path, change.body); status >= 500 && status != http.StatusInsufficientStorage || status == 0 {
			t.Errorf("%s %s: %d %+v", change.method, change.path, status, e.Error)
		}
	}

	empty()
	m.awaitAvailable(shop.ID)
	m.awaitAvailable(other.ID)
	if n := query(t, m.connectionURL(shop.ID), "select count(*) from kept"); n != "1000" {
		t.Errorf("%s rows are left", n)
	}
	if n := query(t, m.connectionURL(other.ID), "select n from kept"); n != "7" {
		t.Errorf("the other database answers %s", n)
	}
	m.must("POST", objects+"?key=after", strings.NewReader("after"), nil)
	var third database
	testenv.Eventually(t, "room for another database", func() bool {
		status, e := m.do("POST", "/databases", map[string]any{"project": m.project(), "name": "third"})
		return status == http.StatusOK && json.Unmarshal(e.Data, &third) == nil
	})
	m.awaitAvailable(third.ID)
	var list []database
	m.must("GET", "/databases", nil, &list)
	if len(list) != 3 {
		t.Errorf("%d databases, not 3: %+v", len(list), list)
	}
	m.stop()
	m.start() // the next start is not affected
	m.awaitAvailable(shop.ID)
}

// TestUploadsUntilTheDiskIsFull checks that objects alone do not fill the disk
// to the last byte: acknowledged objects are listed and counted, and can be
// deleted.
func TestUploadsUntilTheDiskIsFull(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.smallDisk("100")
	m.start()
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	var bucket struct {
		ID          string
		ObjectCount int `json:"object_count"`
	}
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "files"}, &bucket)
	objects := "/buckets/" + bucket.ID + "/objects"
	put := 0
	for _, size := range []int{1 << 20, 4 << 10} {
		for {
			status, e := m.do("POST", fmt.Sprintf("%s?key=%d", objects, put), strings.NewReader(strings.Repeat("x", size)))
			if status == http.StatusInsufficientStorage && strings.Contains(e.Error.Message, "disk is full") {
				break
			}
			if status != http.StatusOK {
				t.Fatalf("%d %+v", status, e.Error)
			}
			put++
		}
	}
	m.must("GET", "/buckets/"+bucket.ID, nil, &bucket)
	if bucket.ObjectCount != put {
		t.Errorf("%d objects were acknowledged, %d are counted", put, bucket.ObjectCount)
	}
	for i := range put {
		m.must("DELETE", fmt.Sprintf("%s?key=%d", objects, i), nil, nil)
	}
	m.must("DELETE", "/buckets/"+bucket.ID, nil, nil)
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "again"}, &bucket)
	testenv.Eventually(t, "room for uploads", func() bool {
		status, _ := m.do("POST", "/buckets/"+bucket.ID+"/objects?key=again", strings.NewReader("again"))
		return status == http.StatusOK
	})
}

// exhaust writes WAL until the disk is full or the server is down.
func exhaust(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return // it is down
	}
	defer conn.Close(ctx)
	for range 1000 {
		if _, err := conn.Exec(ctx, "select pg_logical_emit_message(false, 'fill', repeat('x', 1000000))"); err != nil {
			return
		}
	}
	t.Fatal("a gigabyte of WAL went onto the small disk")
}

func (m *machine) statusOf(id string) (status, reason string) {
	m.t.Helper()
	var db struct {
		Status string
		Reason *string `json:"status_reason"`
	}
	m.must("GET", "/databases/"+id, nil, &db)
	if db.Reason != nil {
		reason = *db.Reason
	}
	return db.Status, reason
}

// TestUpgradeWithoutSpace refuses an upgrade that does not fit on the disk, before the database is stopped.
func TestUpgradeWithoutSpace(t *testing.T) {
	t.Parallel()
	if postgrestest.Binaries(t).Major >= 18 {
		t.Skip("the tests run on the newest version")
	}
	m := newMachine(t)
	m.env = append(m.env, "PATH="+postgrestest.Major(t, 18).Dir+":"+os.Getenv("PATH"))
	m.smallDisk("360")
	m.start("--no-exports")
	var db database
	m.must("POST", "/databases", map[string]any{"project": m.project(), "name": "shop", "version": "15"}, &db)
	url := m.connectionURL(db.ID)
	query(t, url, "create table kept as select 7 as n")
	started := query(t, url, "select pg_postmaster_start_time()::text")
	testenv.Eventually(t, "the refusal", func() bool { // an automatic backup may be running
		status, e := m.do("POST", "/databases/"+db.ID+"/upgrade", map[string]any{"version": "18"})
		return status == 507 && strings.Contains(e.Error.Message, "the operator must free disk space")
	})
	if got := query(t, url, "select n || ' ' || pg_postmaster_start_time()::text from kept"); got != "7 "+started {
		t.Errorf("afterwards it answers %s, and was started at %s", got, started)
	}
	if n := m.generations(db.ID); n != 1 {
		t.Errorf("there are %d data directories", n)
	}
}

// TestRecoverDiskFull recovers onto a full disk: the error says so, and the command goes on once there is space.
func TestRecoverDiskFull(t *testing.T) {
	t.Parallel()
	old := newMachine(t)
	c := old.prepareWithPassphrase(t)
	old.start(c.serveFlags()...)
	shop := old.createDatabase("shop")
	query(t, old.connectionURL(shop.ID), "create table t as select 7 n")
	old.backup(shop.ID)
	old.awaitCopied()
	old.stop()
	fresh := old.elsewhere()
	fill, empty := fresh.smallDisk("900")
	fill()
	_, says, code := fresh.run("", "recover", c.url, "--passphrase-file", c.passphrase, "--yes", "--take-over", "--listen", "127.0.0.1:0")
	if code == 0 || !strings.Contains(says, "is full: make space, and begin the command again") {
		t.Errorf("onto a full disk: exit code %d, %s", code, says)
	}
	empty()
	fresh.recoverFrom(c)
	fresh.awaitAvailable(shop.ID)
	if got := query(t, fresh.connectionURL(shop.ID), "select n from t"); got != "7" {
		t.Errorf("the database has %s", got)
	}
}
