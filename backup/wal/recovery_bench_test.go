package wal

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/postgres/postgrestest"
)

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// BenchmarkCommit runs pgbench with and without a receiver by turns. It reports
// the transactions a second with it against those without, and the time from
// commit to durable in the archive.
func BenchmarkCommit(b *testing.B) {
	bin := postgrestest.Binaries(b)
	c := newCluster(b, bin, DefaultSegmentSize, "fsync=on", "max_wal_size=4GB", "shared_buffers=256MB")
	run(b, tool(bin, "pgbench", "-i", "-q", "-s", "20", "-h", c.sockets, "-U", "postgres", "postgres"))
	load := func() float64 {
		out := run(b, tool(bin, "pgbench", "-c", "8", "-j", "2", "-T", "8", "-h", c.sockets, "-U", "postgres", "postgres"))
		n, err := strconv.ParseFloat(tps.FindStringSubmatch(out)[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	a := openArchive(b, filepath.Join(b.TempDir(), "wal"))
	for b.Loop() {
		var with, without float64
		var p99, most time.Duration
		for range 4 {
			without += load()
			r := receive(b, c, a, 1)
			r.waitFor(b, 1, c.flushed()) // it has caught up
			r.ledger.mu.Lock()
			r.ledger.lags = lagCounter{}
			r.ledger.mu.Unlock()
			with += load()
			s := r.Status()
			p99, most = max(p99, s.LagP99), max(most, s.MaxLag)
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(with/without, "tps/tps")
		b.ReportMetric(without/4, "tps-without")
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
		b.ReportMetric(float64(most.Microseconds())/1000, "max-ms")
	}
}

// BenchmarkReplay recovers through 27 segments: fed while it replays, and with
// all of them laid in pg_wal beforehand.
func BenchmarkReplay(b *testing.B) {
	bin := postgrestest.Binaries(b)
	c := newCluster(b, bin, DefaultSegmentSize, "max_wal_size=2GB")
	a := openArchive(b, filepath.Join(b.TempDir(), "wal"))
	r := receive(b, c, a, 1)
	run(b, tool(bin, "pgbench", "-i", "-q", "-s", "10", "-h", c.sockets, "-U", "postgres", "postgres"))
	r.waitFor(b, 1, c.flushed())
	backup := takeBackup(b, c)
	for c.flushed() < backup.stop+27*DefaultSegmentSize {
		run(b, tool(bin, "pgbench", "-c", "4", "-t", "5000", "-h", c.sockets, "-U", "postgres", "postgres"))
	}
	end := c.flushed()
	r.waitFor(b, 1, end)
	c.stop()
	resolution, err := a.Resolve(context.Background(), Target{Incarnation: 1, Since: backup.start, LSN: end})
	if err != nil {
		b.Fatal(err)
	}
	for name, prepare := range map[string]func(Recovery) error{
		"fed":  func(r Recovery) error { return r.Prepare(context.Background()) },
		"laid": func(r Recovery) error { return r.Fill(context.Background()) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				restored, recovery := newRecovery(b, a, bin, backup, resolution.Last)
				b.StartTimer()
				if err := prepare(recovery); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				restored.launch()
				recovery.Exited = restored.exited
				if name == "laid" {
					waitPaused(b, restored)
				} else if err := recovery.Run(context.Background()); err != nil {
					b.Fatal(err, restored.log())
				}
				b.ReportMetric(time.Since(began).Seconds(), "replay-s")
				b.StopTimer()
				restored.stop()
				b.StartTimer()
			}
		})
	}
	b.Log(fmt.Sprint(a.Sizes(1)))
}

func waitPaused(b *testing.B, c *cluster) {
	c.waitReady()
	conn := c.connect()
	eventually(b, "replay has paused", func() bool {
		var state string
		err := conn.QueryRow(context.Background(), "select pg_get_wal_replay_pause_state()").Scan(&state)
		return err == nil && state == "paused"
	})
}
