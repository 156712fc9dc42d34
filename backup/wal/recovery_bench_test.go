package wal

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/backup/wal/xlog"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// BenchmarkCommit compares pgbench under our receiver with pgbench without a receiver, and under pg_receivewal,
// which checks and compresses nothing and syncs whole segments. It reports the ratios of transactions per second,
// and the time from commit to durable in the archive: with few clients, which leave processors idle, and with as
// many as saturate them.
func BenchmarkCommit(b *testing.B) {
	bin := postgrestest.Binaries(b)
	c := newCluster(b, bin, xlog.DefaultSegmentSize, "fsync=on", "max_wal_size=4GB", "shared_buffers=256MB")
	postgrestest.Run(b, postgrestest.Tool(bin, "pgbench", "-i", "-q", "-s", "20", "-h", c.SocketDir, "-U", "postgres", "postgres"))
	a := openArchive(b, filepath.Join(b.TempDir(), "wal"))
	for _, clients := range []int{2, 8} {
		b.Run(fmt.Sprintf("x%d", clients), func(b *testing.B) { compareCommits(b, c, a, bin, clients) })
	}
}

func compareCommits(b *testing.B, c *cluster, a *Archive, bin binaries.Set, clients int) {
	load := func() float64 {
		out := postgrestest.Run(b, postgrestest.Tool(bin, "pgbench", "-c", strconv.Itoa(clients), "-T", "3", "-h", c.SocketDir, "-U", "postgres", "postgres"))
		n, err := strconv.ParseFloat(tps.FindStringSubmatch(out)[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	var lags []time.Duration
	received := func() float64 { return underReceiver(b, c, a, &lags, load) }
	arms := []rounds.Arm{
		{Name: "ours", Measure: received},
		{Name: rounds.Itself, Measure: received},
		{Name: "without", Measure: load},
		{Name: "pg_receivewal", Measure: func() float64 { return underReceivewal(b, c, bin, load) }},
	}
	compared := rounds.Compare("ours", rounds.Itself, "without", "pg_receivewal")
	load() // the first run writes full-page images
	for b.Loop() {
		for range 2 * rounds.Least { // short turns, because the machine's speed varies from minute to minute
			compared.Round(arms...)
		}
	}
	compared.Report(b, "transaction-rate")
	b.ReportMetric(rounds.Median(compared.Values("without")), "tps-without")
	slices.Sort(lags)
	b.ReportMetric(float64(lags[len(lags)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(lags[len(lags)-1].Microseconds())/1000, "max-ms")
}

// underReceiver is load while our receiver runs and compresses what it receives, but not what it missed before. It
// adds samples of the lag to lags.
func underReceiver(b *testing.B, c *cluster, a *Archive, lags *[]time.Duration, load func() float64) float64 {
	r := receive(b, c, a, 1)
	for flushed := c.flushed().RecordEnd(xlog.DefaultSegmentSize); r.Status().Durable < flushed; time.Sleep(time.Millisecond) { // it catches up
		if s := r.Status(); s.State == StateFailed {
			b.Fatal(s.LastError)
		}
	}
	r.writer.compressor.wait()
	over := make(chan struct{})
	var samples sync.WaitGroup
	samples.Go(func() {
		for tick := time.Tick(5 * time.Millisecond); ; {
			select {
			case <-tick:
				*lags = append(*lags, r.Status().Lag)
			case <-over:
				return
			}
		}
	})
	rate := load()
	close(over)
	samples.Wait()
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	return rate
}

// underReceivewal is load while pg_receivewal runs.
func underReceivewal(b *testing.B, c *cluster, bin binaries.Set, load func() float64) float64 {
	cmd := postgrestest.Tool(bin, "pg_receivewal", "-D", b.TempDir(), "-h", c.SocketDir, "-U", "postgres")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer kill(cmd)
	const streaming = "select count(*) from pg_stat_replication where application_name = 'pg_receivewal' and state = 'streaming'"
	for deadline := time.Now().Add(10 * time.Second); c.ask(streaming) != "1"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("pg_receivewal does not receive")
		}
	}
	return load()
}

// BenchmarkReplay recovers through 27 segments: fed during replay, and with all of them installed in pg_wal
// beforehand.
func BenchmarkReplay(b *testing.B) {
	bin := postgrestest.Binaries(b)
	c := newCluster(b, bin, xlog.DefaultSegmentSize, "max_wal_size=2GB")
	a := openArchive(b, filepath.Join(b.TempDir(), "wal"))
	r := receive(b, c, a, 1)
	postgrestest.Run(b, postgrestest.Tool(bin, "pgbench", "-i", "-q", "-s", "10", "-h", c.SocketDir, "-U", "postgres", "postgres"))
	r.waitFor(b, 1, c.flushed())
	backup := takeBackup(b, c)
	for c.flushed() < backup.stop+27*xlog.DefaultSegmentSize {
		postgrestest.Run(b, postgrestest.Tool(bin, "pgbench", "-c", "4", "-t", "5000", "-h", c.SocketDir, "-U", "postgres", "postgres"))
	}
	end := c.flushed()
	r.waitFor(b, 1, end)
	c.Stop()
	resolution, err := a.Resolve(context.Background(), Target{Generation: 1, Since: backup.start, LSN: end})
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
				restored.Launch()
				recovery.Exited = restored.Exited
				if name == "laid" {
					waitPaused(b, restored)
				} else if err := recovery.Run(context.Background()); err != nil {
					b.Fatal(err, restored.Log())
				}
				b.ReportMetric(time.Since(began).Seconds(), "replay-s")
				b.StopTimer()
				restored.Stop()
				b.StartTimer()
			}
		})
	}
	b.Log(fmt.Sprint(a.Sizes(1)))
}

func waitPaused(b *testing.B, c *cluster) {
	c.WaitReady()
	conn := c.Connect()
	testenv.Eventually(b, "replay has paused", func() bool {
		var state string
		err := conn.QueryRow(context.Background(), "select pg_get_wal_replay_pause_state()").Scan(&state)
		return err == nil && state == "paused"
	})
}
