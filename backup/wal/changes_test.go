package wal

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
)

// TestChangedPages compares the changes in the WAL with the differences between two copies of a data directory.
func TestChangedPages(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	c := newCluster(t, bin, smallSegment, "max_wal_size=200MB")
	a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
	r := receive(t, c, a, 1)
	workload(c)
	c.do("create table big (id int primary key, v text)", "insert into big select g, repeat('y', 300) from generate_series(1, 20000) g",
		"create table cut as select * from big", "create table dropped2 as select * from big")
	r.waitFor(t, 1, c.flushed())
	c.Stop() // writes everything out
	before := filepath.Join(t.TempDir(), "before")
	copyData(t, c.Dir, before)
	c.Start()
	from := c.lsn("select redo_lsn::text from pg_control_checkpoint()")
	c.do("update big set v = 'z' where id % 500 = 3", "truncate cut", "insert into cut select 1, 'a'", "drop table dropped2",
		"create database later", "create table fresh as select * from big limit 100", "vacuum big", "select count(*) from t")
	c.Stop()
	c.Start()
	end := c.lsn("select redo_lsn::text from pg_control_checkpoint()")
	r.waitFor(t, 1, end)
	c.Stop()
	changes, err := a.ChangedPages(t.Context(), 1, 1, from, end)
	if err != nil {
		t.Fatal(err)
	}
	compareChanges(t, before, c.Dir, changes)
}

// compareChanges fails for pages that differ and are not reported. Pages reported without a difference cost only
// time, but must not be all pages.
func compareChanges(t *testing.T, before, after string, changes *xlog.Changes) {
	t.Helper()
	differing, named, pagesInAll := 0, 0, 0
	files, _ := filepath.Glob(filepath.Join(after, "base", "*", "*"))
	global, _ := filepath.Glob(filepath.Join(after, "global", "*"))
	for _, file := range append(files, global...) {
		name, _ := filepath.Rel(after, file)
		pages, known := changes.Pages(name)
		if !known {
			continue
		}
		now, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old, err := os.ReadFile(filepath.Join(before, name))
		if err != nil {
			t.Errorf("%s is new, and not to be read whole", name)
			continue
		}
		changed := map[uint32]bool{}
		for _, page := range pages {
			changed[page] = true
		}
		named += len(pages)
		for at := 0; at < len(now); at += xlog.PageSize {
			pagesInAll++
			page := now[at:min(at+xlog.PageSize, len(now))]
			if at >= len(old) || string(old[at:min(at+xlog.PageSize, len(old))]) == string(page) {
				continue
			}
			if differing++; !changed[uint32(at/xlog.PageSize)] {
				t.Errorf("page %d of %s differs, and is not named", at/xlog.PageSize, name)
			}
		}
	}
	t.Logf("%d of %d pages differ, %d are named", differing, pagesInAll, named)
	if differing < 20 || named > pagesInAll/2 {
		t.Errorf("%d of %d pages differ, %d are named", differing, pagesInAll, named)
	}
}
