package wal

import (
	"path/filepath"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
)

// TestRecoverSubtransactions restores a backup taken while a transaction with many subtransactions ran, which is
// still running at the target. Such a server accepts no connections before its recovery ends: it neither reports its
// position nor pauses.
func TestRecoverSubtransactions(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment)
		a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
		r := receive(t, c, a, 1)
		c.do("create table kept (n int)", "create table open (n int)")
		long := c.Connect()
		for _, sql := range []string{
			"begin",
			"do $$ begin for i in 1..100 loop begin insert into open values (i); exception when division_by_zero then null; end; end loop; end $$",
		} {
			if _, err := long.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
		b := takeBackup(t, c)
		near := c.flushed()
		c.do("insert into kept values (1)")
		for c.flushed() < b.stop+(feedAhead+4)*smallSegment {
			c.do("insert into kept select 0 from generate_series(1, 10000)")
		}
		c.do("insert into kept values (2)")
		far := c.flushed()
		r.waitFor(t, 1, far)
		for target, want := range map[xlog.LSN]string{near: "0", far: "2"} {
			restored, reach := restoreTo(t, a, bin, b, Target{Generation: 1, LSN: target})
			if got := restored.ask("select count(*)::text from kept where n > 0"); got != want {
				t.Errorf("at %v: %s rows, want %s", reach, got, want)
			}
			if got := restored.ask("select count(*)::text from open"); got != "0" {
				t.Errorf("at %v: %s rows of an open transaction", reach, got)
			}
			restored.Stop()
		}
	})
}

// TestRecoverLongRecord restores across a record that is longer than the segments installed ahead of the server.
func TestRecoverLongRecord(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment)
		a := openArchive(t, filepath.Join(t.TempDir(), "wal"))
		r := receive(t, c, a, 1)
		c.do("create table kept (n int)")
		b := takeBackup(t, c)
		c.do("select pg_logical_emit_message(true, 'test', repeat('x', 20000000))", "insert into kept values (1)")
		end := c.flushed()
		r.waitFor(t, 1, end)
		restored, reach := restoreTo(t, a, bin, b, Target{Generation: 1, LSN: end})
		if got := restored.ask("select count(*)::text from kept"); got != "1" {
			t.Errorf("at %v: %s rows", reach, got)
		}
	})
}
