package wal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// workload generates WAL of many kinds: small and large records, full-page images, records that span pages and
// segments, subtransactions, two-phase commits, DDL.
func workload(c *cluster) {
	c.do(
		"create table t (id int primary key, v text)",
		"insert into t select g, repeat(md5(g::text), 1 + g % 40) from generate_series(1, 4000) g",
		"create index on t (md5(v))", "create index on t using gin (string_to_array(v, 'a'))",
		"create index on t using hash (v)", "create index on t using brin (id)",
		"checkpoint",
		"update t set v = v || 'x' where id % 3 = 0",
		"begin; savepoint a; insert into t values (-1, 'a'); rollback to a; insert into t values (-2, 'b'); commit",
		"begin; insert into t values (-3, 'c'); prepare transaction 'p'", "commit prepared 'p'",
		"begin; insert into t values (-4, 'c'); prepare transaction 'q'", "rollback prepared 'q'",
		"create table dropped as select * from t", "drop table dropped",
		"create sequence s", "select nextval('s') from generate_series(1, 100)",
		"select pg_logical_emit_message(true, 'x', repeat('y', 3000000))",
		"create database copied strategy = file_copy", "create database logged strategy = wal_log", "drop database copied",
		"delete from t where id % 7 = 0", "vacuum t", "truncate t", "select pg_switch_wal()",
		"insert into t select g, 'z' from generate_series(1, 2000) g", "vacuum full t",
		"select txid_current()",
	)
}

func scannerFor(t testing.TB, c *cluster, segmentSize uint64) (*xlog.Scanner, []string) {
	t.Helper()
	files := c.segments()
	_, n, ok := xlog.ParseSegmentName(filepath.Base(files[0]), segmentSize)
	if !ok {
		t.Fatalf("%s is not the name of a segment", files[0])
	}
	return xlog.NewScanner(xlog.ScannerConfig{SegmentSize: segmentSize, Timeline: 1}, xlog.LSN(n*segmentSize)), files
}

// scanFiles scans files to the end of WAL, in pieces of random sizes if broken is set.
func scanFiles(t testing.TB, s *xlog.Scanner, files []string, broken bool, each func(*xlog.Record)) {
	t.Helper()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for len(data) > 0 {
			n := len(data)
			if broken {
				n = min(n, 1+rand.IntN(30000)*rand.IntN(2)+rand.IntN(40))
			}
			s.Feed(data[:n])
			for data = data[n:]; s.Next(); {
				each(s.Record())
			}
			if s.Err() != nil {
				return
			}
		}
	}
}

var resourceNames = []string{
	"XLOG", "Transaction", "Storage", "CLOG", "Database", "Tablespace", "MultiXact", "RelMap", "Standby", "Heap2", "Heap", "Btree",
	"Hash", "Gin", "Gist", "Sequence", "SPGist", "BRIN", "CommitTs", "ReplicationOrigin", "Generic", "LogicalMessage",
}

var blockReference = regexp.MustCompile(`blkref #\d+: rel (\d+)/(\d+)/(\d+)(?: fork (\w+))? blk (\d+)`)

var endTime = regexp.MustCompile(`desc: (?:COMMIT|ABORT)(?:_PREPARED)? (?:\d+: )?(\S+ \S+ UTC)`)

// dumped is pg_waldump's description of a record, and ours.
type dumped struct {
	place, blocks, end string
}

// waldump runs pg_waldump, which stops at the end of WAL with an error.
func waldump(c *cluster, from xlog.LSN) (all []dumped) {
	out, _ := postgrestest.Tool(c.Bin, "pg_waldump", "-p", filepath.Join(c.Dir, "pg_wal"), "-s", from.String()).Output()
	for line := range strings.Lines(string(out)) {
		var d dumped
		var name, lsn, prev string
		var part, total, xid int
		_, err := fmt.Sscanf(strings.ReplaceAll(line, "/ ", "/"), "rmgr: %s len (rec/tot): %d/%d, tx: %d, lsn: %s prev %s",
			&name, &part, &total, &xid, &lsn, &prev)
		if err != nil {
			continue
		}
		at, _ := xlog.ParseLSN(strings.Trim(lsn, ","))
		d.place = fmt.Sprintf("%v %s %d %d", at, name, total, xid)
		for _, ref := range blockReference.FindAllStringSubmatch(line, -1) {
			fork := map[string]int{"": 0, "fsm": 1, "vm": 2, "init": 3}[ref[4]]
			d.blocks += fmt.Sprintf(" %s/%s/%s %d %s", ref[1], ref[2], ref[3], fork, ref[5])
		}
		if at := endTime.FindStringSubmatch(line); at != nil {
			d.end = at[1]
		}
		all = append(all, d)
	}
	return all
}

func ours(t testing.TB, r *xlog.Record, p *xlog.Parts) (d dumped) {
	if err := p.Read(r); err != nil {
		t.Error(err)
	}
	d.place = fmt.Sprintf("%v %s %d %d", r.Start, resourceNames[r.Resource], r.Length(), r.XID)
	for _, b := range p.Blocks {
		d.blocks += fmt.Sprintf(" %d/%d/%d %d %d", b.Tablespace, b.Database, b.Relation.Number, b.Fork, b.Number)
	}
	if outcome, at := r.Outcome(); outcome != xlog.NoOutcome && outcome != xlog.Prepared { // whose time it does not show
		d.end = at.Format("2006-01-02 15:04:05.000000 UTC")
	}
	return d
}

// TestAgainstWaldump compares every record with PostgreSQL's own reader.
func TestAgainstWaldump(t *testing.T) {
	t.Parallel()
	c := newCluster(t, postgrestest.Binaries(t), smallSegment, "wal_keep_size=1GB", "max_wal_size=1GB")
	workload(c)
	c.Stop()
	s, files := scannerFor(t, c, smallSegment)
	var got []dumped
	var parts xlog.Parts
	scanFiles(t, s, files, true, func(r *xlog.Record) { got = append(got, ours(t, r, &parts)) })
	if len(got) == 0 {
		t.Fatalf("no records: %v", s.Err())
	}
	first, _, _ := strings.Cut(got[0].place, " ")
	from, _ := xlog.ParseLSN(first)
	want := waldump(c, from)
	t.Logf("%d records in %d segments; %v", len(got), len(files), s.Err())
	if len(got) != len(want) {
		t.Errorf("%d records, pg_waldump finds %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("record %d:\n  %+v\npg_waldump:\n  %+v", i, got[i], want[i])
		}
	}
}

// inspected gets the positions of all records from the server's own extension.
func inspected(c *cluster, from, to xlog.LSN) (places []string) {
	c.do("create extension if not exists pg_walinspect")
	rows, err := c.Connect().Query(c.t.Context(), "select start_lsn::text, resource_manager, record_length, xid::text"+
		" from pg_get_wal_records_info($1::text::pg_lsn, $2::text::pg_lsn)", from.String(), to.String())
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var at, name, xid string
		var length int
		if err := rows.Scan(&at, &name, &length, &xid); err != nil {
			c.t.Fatal(err)
		}
		places = append(places, fmt.Sprintf("%s %s %d %s", at, name, length, xid))
	}
	return places
}

// TestScanMajors reads the WAL of two major versions, whole and in pieces: both find the records that the server
// finds.
func TestScanMajors(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, bin binaries.Set) {
		c := newCluster(t, bin, smallSegment, "wal_keep_size=1GB", "max_wal_size=1GB")
		workload(c)
		end := c.flushed()
		s, files := scannerFor(t, c, smallSegment)
		var start xlog.LSN
		scanFiles(t, s, files[:1], false, func(r *xlog.Record) {
			if start == 0 {
				start = r.Start
			}
		})
		want := inspected(c, start, end)
		c.Crash()
		var seen [2][]dumped
		for i, broken := range []bool{false, true} {
			s, files := scannerFor(t, c, smallSegment)
			var parts xlog.Parts
			scanFiles(t, s, files, broken, func(r *xlog.Record) { seen[i] = append(seen[i], ours(t, r, &parts)) })
			if s.End() < end || s.Major() != bin.Major {
				t.Errorf("WAL of %d ends at %v, PostgreSQL %d had flushed %v: %v", s.Major(), s.End(), bin.Major, end, s.Err())
			}
		}
		for i, place := range want {
			if seen[0][i].place != place {
				t.Fatalf("record %d is %s, the server says %s", i, seen[0][i].place, place)
			}
		}
		if len(want) < 1000 || fmt.Sprint(seen[0]) != fmt.Sprint(seen[1]) {
			t.Errorf("%d records whole, %d in pieces, and not the same", len(seen[0]), len(seen[1]))
		}
	})
}
