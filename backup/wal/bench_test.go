package wal

import (
	"os"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/postgrestest"
)

// realWAL returns WAL of a mixed workload, from the start of a segment.
func realWAL(b *testing.B) (data []byte, config xlog.ScannerConfig, start xlog.LSN) {
	b.Helper()
	c := newCluster(b, postgrestest.Binaries(b), xlog.DefaultSegmentSize, "wal_keep_size=4GB", "max_wal_size=4GB", "autovacuum=off")
	c.do("create table t (id int primary key, n int, v text)",
		"insert into t select g, g, repeat('x', 80) from generate_series(1, 300000) g", "checkpoint",
		"update t set n = n + 1 where id % 3 = 0", "update t set n = n + 1 where id % 5 = 0")
	c.Stop()
	files := c.segments()
	_, n, _ := xlog.ParseSegmentName(files[0][len(files[0])-24:], xlog.DefaultSegmentSize)
	for _, file := range files {
		segment, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		data = append(data, segment...)
	}
	config = xlog.ScannerConfig{SegmentSize: xlog.DefaultSegmentSize, Timeline: 1}
	start = xlog.LSN(n * xlog.DefaultSegmentSize)
	s := xlog.NewScanner(config, start)
	s.Feed(data)
	for s.Next() {
	}
	return data[:s.End()-start], config, start
}

func BenchmarkScan(b *testing.B) {
	data, config, start := realWAL(b)
	for name, use := range map[string]func(*xlog.Changes, *xlog.Record){
		"check":   func(*xlog.Changes, *xlog.Record) {},
		"changes": (*xlog.Changes).Add,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				var changes xlog.Changes
				s, records := xlog.NewScanner(config, start), 0
				for rest := data; len(rest) > 0; {
					n := min(len(rest), 128<<10)
					s.Feed(rest[:n])
					for rest = rest[n:]; s.Next(); records++ {
						use(&changes, s.Record())
					}
				}
				if s.Err() != nil {
					b.Fatal(s.Err())
				}
				b.ReportMetric(float64(records), "records")
			}
		})
	}
}
