package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// fill creates tables of some tens of megabytes, enough to kill a backup or a
// restore in the middle.
func fill(t *testing.T, url string) {
	t.Helper()
	query(t, url, `create table accounts as
		select n as aid, n % 10 as bid, 0 as abalance, repeat(md5(n::text), 4) as filler from generate_series(1, 300000) n`)
	query(t, url, "alter table accounts add primary key (aid)")
}

// query runs SQL and returns the first column of the first row as text.
func query(t testing.TB, url, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer rows.Close()
	result := ""
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			t.Fatal(err)
		}
		result = fmt.Sprint(values...)
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", sql, rows.Err())
	}
	return result
}

const checksum = "select count(*), sum(aid), sum(hashtext(filler)::bigint) from accounts"

func (m *machine) connectionURL(db string) string {
	m.t.Helper()
	var c struct {
		URL string `json:"connection_url"`
	}
	m.must("GET", "/databases/"+db+"/connection", nil, &c)
	return c.URL
}

type backupRecord struct {
	ID, Status string
	Error      *string
	Progress   int `json:"progress_percent"`
}

// backup makes a backup and waits for its end.
func (m *machine) backup(db string) backupRecord {
	m.t.Helper()
	var b backupRecord
	m.must("POST", "/databases/"+db+"/backups", nil, &b)
	return m.completed(db, b.ID)
}

// completed waits for the end of a backup, which must succeed.
func (m *machine) completed(db, id string) (b backupRecord) {
	m.t.Helper()
	testenv.Eventually(m.t, "the backup", func() bool {
		m.must("GET", "/databases/"+db+"/backups/"+id, nil, &b)
		return b.Status == "completed" || b.Status == "failed"
	})
	if b.Status != "completed" {
		m.t.Fatalf("backup: %+v (%s)", b, *b.Error)
	}
	return b
}

func (m *machine) awaitAvailable(id string) {
	m.t.Helper()
	testenv.Eventually(m.t, "the database", func() bool {
		var db database
		m.must("GET", "/databases/"+id, nil, &db)
		return db.Status == "available"
	})
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.start()
	db := m.createDatabase("shop")
	url := m.connectionURL(db.ID)
	fill(t, url)
	before := query(t, url, checksum)
	b := m.backup(db.ID)
	query(t, url, "drop table accounts")
	var rotated struct {
		URL string `json:"connection_url"`
	}
	m.must("POST", "/databases/"+db.ID+"/rotate-password", nil, &rotated)
	m.must("POST", "/databases/"+db.ID+"/backups/"+b.ID+"/restore", nil, nil)
	m.awaitAvailable(db.ID)
	// The password is the current one, not the one at the time of the backup.
	if after := query(t, rotated.URL, checksum); after != before {
		t.Errorf("restored %s, not %s", after, before)
	}
	query(t, rotated.URL, "create table later (n int)")
	m.must("POST", "/databases/"+db.ID+"/recovery/undo", nil, nil)
	m.awaitAvailable(db.ID)
	if found := query(t, rotated.URL, "select count(*) from pg_class where relname in ('accounts', 'later')"); found != "0" {
		t.Errorf("after the undo %s of the restored tables are there", found)
	}
}

func TestKillDuringBackup(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.start()
	db := m.createDatabase("shop")
	fill(t, m.connectionURL(db.ID))
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 150 * time.Millisecond} {
		var b backupRecord
		m.must("POST", "/databases/"+db.ID+"/backups", nil, &b)
		time.Sleep(delay) // the time of the kill, not a wait for something
		m.kill()
		m.start()
		m.awaitAvailable(db.ID)
		m.must("GET", "/databases/"+db.ID+"/backups/"+b.ID, nil, &b)
		if b.Status != "failed" && b.Status != "completed" {
			t.Errorf("killed after %s: the backup is %s", delay, b.Status)
		}
		completed := 0
		var list []backupRecord
		m.must("GET", "/databases/"+db.ID+"/backups", nil, &list)
		for _, b := range list {
			if b.Status == "completed" {
				completed++
			}
		}
		if kept := m.manifests(db.ID); kept != completed {
			t.Errorf("killed after %s: %d backups are completed, %d are kept", delay, completed, kept)
		}
	}
	m.backup(db.ID)
}

// manifests counts the backups of a database that exist.
func (m *machine) manifests(database string) int {
	m.t.Helper()
	names, err := filepath.Glob(filepath.Join(m.dataDir, "backups", database, "repository", "manifests", "*"))
	if err != nil {
		m.t.Fatal(err)
	}
	return len(names)
}

// blobs counts blob files, including unfinished ones.
func (m *machine) blobs() int {
	m.t.Helper()
	count := 0
	err := filepath.WalkDir(filepath.Join(m.dataDir, "blobs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "journal" {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() && d.Name() != "format" {
			count++
		}
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return count
}

func TestKillDuringUpload(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.warm = "1"
	m.start()
	bucket := m.createBucket("files")
	objects := "/buckets/" + bucket + "/objects"
	whole := strings.Repeat("whole", 100_000)
	m.must("POST", objects+"?key=whole", strings.NewReader(whole), nil)

	body, send := io.Pipe()
	request, err := http.NewRequest("POST", m.api+objects+"?key=half", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.key)
	ended := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			answer.Body.Close()
			err = fmt.Errorf("the upload was answered with %s", answer.Status)
		}
		ended <- err
	}()
	if _, err := io.CopyN(send, zeros{}, 4<<20); err != nil {
		t.Fatal(err)
	}
	m.kill()
	send.CloseWithError(io.ErrUnexpectedEOF)
	<-ended
	m.start()
	var list []struct{ Key string }
	m.must("GET", objects, nil, &list)
	if len(list) != 1 || list[0].Key != "whole" {
		t.Errorf("objects after the kill: %v", list)
	}
	testenv.Eventually(t, "the end of leftover files", func() bool { return m.blobs() == 1 })
	var object struct {
		URL string `json:"download_url"`
	}
	m.must("GET", objects+"/whole", nil, &object)
	answer, err := http.Get(object.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != whole {
		t.Errorf("downloaded %d bytes, %v", len(text), err)
	}
}

// zeros reads zeros forever.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestKillDuringCreate(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	m := newMachine(t)
	m.warm, m.initdb = "1", true // the first kill meets the making of the template
	m.start()
	project := m.project()
	acknowledged := map[string]string{} // connection URL by name
	for i, delay := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 90 * time.Millisecond, 150 * time.Millisecond} {
		name := fmt.Sprintf("d%d", i)
		answered := make(chan string, 1)
		go func() {
			status, e := m.do("POST", "/databases", map[string]any{"project": project, "name": name})
			var db database
			if status == http.StatusOK && json.Unmarshal(e.Data, &db) == nil {
				answered <- db.Credentials.ConnectionURL
			}
			close(answered)
		}()
		time.Sleep(delay) // the time of the kill
		m.kill()
		if url := <-answered; url != "" {
			acknowledged[name] = url
		}
		m.start()
	}
	var list []struct{ ID, Name string }
	m.must("GET", "/databases", nil, &list)
	there := map[string]bool{}
	for _, db := range list {
		there[db.Name] = true
		m.awaitAvailable(db.ID)
		if got := query(t, m.connectionURL(db.ID), "select 1"); got != "1" {
			t.Errorf("database %s: %s", db.Name, got)
		}
	}
	for name := range acknowledged {
		if !there[name] {
			t.Errorf("database %s was acknowledged and is gone", name)
		}
	}
	testenv.Eventually(t, "a warm server", func() bool { return len(warmServers(m.dataDir)) == 1 && len(m.postmasters()) == len(list)+1 })
	dirs, err := os.ReadDir(filepath.Join(m.dataDir, "instances"))
	if err != nil || len(dirs) != len(list)+1 {
		t.Errorf("%d directories for %d databases and a warm server, %v", len(dirs), len(list), err)
	}
}

// warmServers returns the ports of the servers that wait to become databases, by id: each has an empty file
// server-<format>-<version>-<port>-<id> in the warm pool.
func warmServers(dataDir string) map[string]int {
	ports := map[string]int{}
	for _, name := range names(filepath.Join(dataDir, "warm")) {
		if parts := strings.Split(name, "-"); parts[0] == "server" && len(parts) == 5 {
			ports[parts[4]], _ = strconv.Atoi(parts[3])
		}
	}
	return ports
}

// postmasters returns the servers below instances/.
func (m *machine) postmasters() (all []int) {
	servers := slices.DeleteFunc(m.processes(), func(pid int) bool {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.Contains(string(command), "/instances/")
	})
	for _, pid := range servers {
		if !slices.Contains(servers, postgrestest.Parent(pid)) {
			all = append(all, pid)
		}
	}
	return all
}
