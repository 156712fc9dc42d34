package backup

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkPeer takes and restores a pgbench cluster of scale 20 in turns with
// pg_basebackup (tar, zstd 1 at the client) and tar, and reports the ratios of
// the times: below 1 is faster than the peer. pg_basebackup syncs its files;
// tar's are synced after it (sync -f).
func BenchmarkPeer(b *testing.B) {
	c := newCluster(b)
	c.pgbench(20)
	c.query("checkpoint")
	store, _ := openStore(b)
	dir := b.TempDir()
	var take, restore, peerTake, peerRestore time.Duration
	var result Result
	for b.Loop() {
		peer := filepath.Join(dir, "peer")
		peerTake += timed(func() {
			run(b, pgTool(b, "pg_basebackup", "-h", c.sockets, "-U", "postgres", "-c", "fast", "-X", "fetch",
				"--format=tar", "--compress=client-zstd:1", "-D", peer))
		})
		take += timed(func() {
			var err error
			if result, err = Take(b.Context(), c.replication(), store, Options{}); err != nil {
				b.Fatal(err)
			}
		})
		peerRestore += timed(func() {
			run(b, exec.Command("sh", "-ec", "mkdir "+dir+"/p && zstd -dc "+peer+"/base.tar.zst | tar -x -C "+dir+"/p && sync -f "+dir+"/p"))
		})
		restore += timed(func() {
			if err := Restore(b.Context(), store, result, filepath.Join(dir, "r"), RestoreOptions{}); err != nil {
				b.Fatal(err)
			}
		})
		for _, name := range []string{"peer", "p", "r"} {
			os.RemoveAll(filepath.Join(dir, name))
		}
		store.Remove(result.Refs()...)
	}
	n := float64(b.N)
	b.ReportMetric(take.Seconds()/n, "s/take")
	b.ReportMetric(restore.Seconds()/n, "s/restore")
	b.ReportMetric(take.Seconds()/peerTake.Seconds(), "take/pg_basebackup")
	b.ReportMetric(restore.Seconds()/peerRestore.Seconds(), "restore/zstd|tar")
	b.ReportMetric(float64(result.SizeBytes>>20), "MB")
	b.ReportMetric(float64(result.StoredBytes>>20), "MB-stored")
}

func timed(act func()) time.Duration {
	begin := time.Now()
	act()
	return time.Since(begin)
}
