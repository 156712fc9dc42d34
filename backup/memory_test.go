package backup

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// maxMemory is what the appliance may have in memory, whatever the size.
const maxMemory = 150 << 10 // KiB

// TestMemory takes and restores a backup of a few hundred megabytes in a
// process of its own and looks at the most memory that ever had.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a database of 300 MB")
	}
	if runtime.GOOS != "linux" || raceDetector {
		t.Skip("reads /proc/self/status, which the race detector multiplies")
	}
	c := newCluster(t)
	c.pgbench(20)
	// Twice as much, hard to compress: what comes out is about what goes in.
	c.query("create table noise as select gen_random_uuid() a, gen_random_uuid() b, gen_random_uuid() c from generate_series(1, 1000000)")
	dir := t.TempDir()
	out := run(t, helper("memory", helperArgs{
		URL: c.url("postgres") + " replication=yes", Store: filepath.Join(dir, "store"), Dir: filepath.Join(dir, "r"),
	}))
	var size, taken, restored int64
	if _, err := fmt.Sscan(out, &size, &taken, &restored); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("backup of %d MB: %d MB in memory at most, after the restore %d MB", size>>20, taken>>10, restored>>10)
	if size < 300<<20 || taken == 0 || restored > maxMemory {
		t.Errorf("want at least 300 MB of backup in at most %d MB of memory", maxMemory>>10)
	}
}
