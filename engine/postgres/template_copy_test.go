package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// PostgreSQL's own programs accept a copy of the template as a cluster of its own.
func TestCopiesOfTheTemplate(t *testing.T) {
	t.Parallel()
	pool, dest := warmPool(t, t.TempDir(), 0), t.TempDir()
	dirs := []string{filepath.Join(dest, "a"), filepath.Join(dest, "b")}
	for _, dir := range dirs {
		if err := pool.Take(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if systemIdentifier(t, dirs[0]) == systemIdentifier(t, dirs[1]) {
		t.Error("two copies have the same system identifier")
	}
	if content := len(walOf(t, dirs[0])); content > 64<<10 {
		t.Errorf("a copy begins with %d bytes of WAL", content)
	}
	if forks, err := filepath.Glob(filepath.Join(dirs[0], "base", "*", "*_[fv][sm]*")); err != nil || len(forks) > 0 {
		t.Errorf("a copy has %d maps of free or visible pages, %v", len(forks), err)
	}
	bin := postgrestest.Binaries(t)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin.Tool(name), args...)
		cmd.Env, cmd.Dir = bin.Env(), "/"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	checkData(t, dirs[0])
	trust := []byte("local all all trust\nlocal replication all trust\n")
	if err := os.WriteFile(filepath.Join(dirs[0], "pg_hba.conf"), trust, 0o600); err != nil {
		t.Fatal(err)
	}
	c := postgrestest.StoppedCluster(t, bin, dirs[0], "max_wal_senders=4", "port=5432")
	c.Launch()
	write(t, c)
	socket := []string{"-h", c.SocketDir, "-U", postgres.Superuser}
	run("pg_amcheck", append(socket, "app", "--heapallindexed")...)
	copied := filepath.Join(dest, "basebackup")
	run("pg_basebackup", append(socket, "-D", copied, "--wal-method=stream", "--checkpoint=fast")...)
	run("pg_verifybackup", copied)
	segments, err := filepath.Glob(filepath.Join(dirs[0], "pg_wal", "0*"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("WAL: %q, %v", segments, err)
	}
	run("pg_waldump", "--quiet", "--limit=1000", "--path="+filepath.Join(dirs[0], "pg_wal"), filepath.Base(segments[0]))
}

// walOf returns the WAL of a directory whose server was shut down, which is one file, without the zeros at its end.
func walOf(t *testing.T, dir string) []byte {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "pg_wal", "0*"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("WAL: %q, %v", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil || len(content) != 16<<20 {
		t.Fatalf("%d bytes of WAL, %v", len(content), err)
	}
	return bytes.TrimRight(content, "\x00")
}

// write writes to a starting copy, and checks that no one could log in to it.
func write(t *testing.T, c *postgrestest.Cluster) {
	t.Helper()
	var conn *pgx.Conn
	testenv.Catch(t, 30*time.Second, "a server on the copy", func() (is bool) {
		var err error
		conn, err = pgx.Connect(t.Context(), "host="+c.SocketDir+" user="+postgres.Superuser+" dbname=app")
		return err == nil
	})
	defer conn.Close(t.Context())
	for _, statement := range []string{"create extension amcheck", "create table t as select n from generate_series(1, 10000) n", "vacuum"} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	var canLogIn int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_authid where oid >= 16384 and (rolcanlogin or rolpassword is not null)").Scan(&canLogIn); err != nil || canLogIn > 0 {
		t.Errorf("%d prepared roles can log in, %v", canLogIn, err)
	}
}

// A template that was damaged on the disk is not copied: another one is built.
func TestDamagedTemplate(t *testing.T) {
	t.Parallel()
	damages := map[string]func(t *testing.T, template string){
		"pg_control":    func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "global", "pg_control")) },
		"a catalog":     func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "base", "1", "1259")) },
		"its list":      func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "holdfast_manifest")) },
		"a lost file":   func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "global", "1262")) },
		"half of it":    func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "base")) },
		"its last WAL":  func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "pg_wal")) },
		"a longer file": func(t *testing.T, dir string) { lengthen(t, filepath.Join(dir, "PG_VERSION")) },
	}
	dir := t.TempDir()
	pool := warmPool(t, dir, 0)
	take := func(name string) {
		t.Helper()
		dest := filepath.Join(dir, "taken "+name)
		if err := pool.Take(t.Context(), dest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkData(t, dest)
		if _, err := os.Lstat(filepath.Join(dest, "holdfast_manifest")); err == nil {
			t.Error("the copy has the list of the template")
		}
	}
	take("nothing")
	template, err := filepath.Glob(filepath.Join(dir, "template-*"))
	if err != nil || len(template) != 1 {
		t.Fatalf("%q, %v", template, err)
	}
	for name, damage := range damages {
		damage(t, template[0])
		take(name)
	}
	// Several calls find the damage at once.
	flip(t, filepath.Join(template[0], "PG_VERSION"))
	var calls sync.WaitGroup
	for i := range 4 {
		calls.Go(func() {
			if err := pool.Take(t.Context(), filepath.Join(dir, fmt.Sprint("at once ", i))); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*.building")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// checkData lets pg_checksums read every page of a data directory.
func checkData(t *testing.T, dir string) {
	t.Helper()
	bin := postgrestest.Binaries(t)
	cmd := exec.CommandContext(t.Context(), bin.Tool("pg_checksums"), "--check", "-D", dir)
	cmd.Env, cmd.Dir = bin.Env(), "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("pg_checksums: %v\n%s", err, out)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func lengthen(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}
