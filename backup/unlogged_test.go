package backup

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/backup/repository"
	"holdfast/engine/postgres/postgrestest"
)

// TestUnloggedWhileListed has an unlogged index whose main fork is listed before it has an init fork, like any
// created during the listing. WAL creates the init fork, and PostgreSQL the main fork, which must not exist already.
func TestUnloggedWhileListed(t *testing.T) {
	c := newCluster(t)
	c.pgbench(1)
	archive := newStreamed(t, c)
	a := newArchive(c)
	c.query("create unlogged table u as select 1 as n")
	c.query(`create function wait(n int) returns int immutable language plpgsql as
		'begin perform pg_advisory_xact_lock(1); return n; end'`)
	held := c.connect()
	if _, err := held.Exec(t.Context(), "select pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	build := pgTool(t, "psql", "-X", "-h", c.SocketDir, "-U", "postgres", "-c", "create index late on u (wait(n))", "postgres")
	if err := build.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for c.query("select count(*) from pg_locks where locktype = 'advisory' and not granted") == "0" {
		if time.Now().After(deadline) {
			t.Fatal("the index is not being built")
		}
		time.Sleep(10 * time.Millisecond)
	}
	repo, _ := openRepository(t)
	var once sync.Once
	result, err := Take(t.Context(), c.connect(), repo, archive, Options{ID: "b0", Progress: func(int64, int64) {
		once.Do(func() {
			if _, err := held.Exec(t.Context(), "select pg_advisory_unlock(1)"); err != nil {
				t.Error(err)
			}
			if err := build.Wait(); err != nil {
				t.Error(err)
			}
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	late := c.query("select pg_relation_filepath('late')")
	mustLeaveOut(t, repo, "b0", late, result.SizeBytes)
	c.query("insert into u select generate_series(1, 100)")
	result, err = Take(t.Context(), c.connect(), repo, archive, Options{ID: "b1", Base: "b0"})
	if err != nil || result.WholeReason != "" {
		t.Fatalf("%+v, %v", result, err)
	}
	mustLeaveOut(t, repo, "b1", late, result.SizeBytes)
	for _, id := range []string{"b0", "b1"} {
		dir := restored(t, repo, id, a)
		postgrestest.Run(t, pgTool(t, "pg_verifybackup", dir))
		r := startCluster(t, dir)
		if got := r.query("select count(*) from u where wait(n) = 1"); got != "0" {
			t.Errorf("%s: the unlogged table has %s rows after a restore", id, got)
		}
		r.query("insert into u values (1)")
		r.Stop()
		if _, err := os.Lstat(filepath.Join(dir, late+"_init")); err != nil {
			t.Error(err)
		}
	}
}

// mustLeaveOut checks that a backup has no file of the relation's main fork, and that its size is the sum of its
// files.
func mustLeaveOut(t *testing.T, repo *repository.Repository, id, relation string, size int64) {
	t.Helper()
	m, _, err := repo.Manifest(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Entries {
		size -= e.Size
		if e.Path == relation || strings.HasPrefix(e.Path, relation+".") {
			t.Errorf("%s has %s, of an unlogged relation", id, e.Path)
		}
	}
	if size != 0 {
		t.Errorf("%s says %d bytes more than its files have", id, size)
	}
}
