package postgres_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// PostgreSQL's own programs accept a copy of the template as a cluster of its own.
func TestCopiesOfTheTemplate(t *testing.T) {
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
	bin := postgrestest.Binaries(t)
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), bin.Tool(name), args...)
		cmd.Env, cmd.Dir = bin.Env(), "/"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	run("pg_checksums", "--check", "-D", dirs[0])
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

// write writes to a starting copy, and checks that no one could log in to it.
func write(t *testing.T, c *postgrestest.Cluster) {
	t.Helper()
	var conn *pgx.Conn
	testenv.Within(t, 30*time.Second, "a server on the copy", func() (is bool) {
		var err error
		conn, err = pgx.Connect(t.Context(), "host="+c.SocketDir+" user="+postgres.Superuser+" dbname=app")
		return err == nil
	})
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "create extension amcheck; create table t as select n from generate_series(1, 10000) n"); err != nil {
		t.Error(err)
	}
	var canLogIn int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_authid where oid >= 16384 and (rolcanlogin or rolpassword is not null)").Scan(&canLogIn); err != nil || canLogIn > 0 {
		t.Errorf("%d prepared roles can log in, %v", canLogIn, err)
	}
}

// A template that was damaged on the disk is not copied.
func TestDamagedTemplate(t *testing.T) {
	dir := t.TempDir()
	pool := warmPool(t, dir, 0)
	if err := pool.Take(t.Context(), filepath.Join(dir, "first")); err != nil {
		t.Fatal(err)
	}
	template, err := filepath.Glob(filepath.Join(dir, "template-*"))
	if err != nil || len(template) != 1 {
		t.Fatalf("%q, %v", template, err)
	}
	control := filepath.Join(template[0], "global", "pg_control")
	content, err := os.ReadFile(control)
	if err != nil {
		t.Fatal(err)
	}
	content[100]++
	if err := os.WriteFile(control, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pool.Take(t.Context(), filepath.Join(dir, "second")); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged template was copied: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.building")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
