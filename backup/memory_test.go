package backup

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// maxMemory is what the appliance may have in memory, whatever the size.
const maxMemory = 150 << 10 // KiB

// TestMemory takes and restores backups of a few hundred megabytes in a process
// of its own and looks at the most memory that ever had.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes a database of 300 MB")
	}
	if runtime.GOOS != "linux" || raceDetector {
		t.Skip("reads /proc/self/status, which the race detector multiplies")
	}
	c := newCluster(t)
	c.pgbench(15)
	// As much again, hard to compress: what comes out is about what goes in.
	c.query("create table noise as select gen_random_uuid() a, gen_random_uuid() b, gen_random_uuid() c from generate_series(1, 900000)")
	dir := t.TempDir()
	out := run(t, helper("memory", helperArgs{URL: c.url("postgres"), Repository: filepath.Join(dir, "repository"), Dir: filepath.Join(dir, "r")}))
	var taken, restored int64
	if _, err := fmt.Sscan(out, &taken, &restored); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d MB in memory at most, after the restore %d MB", taken>>10, restored>>10)
	if taken == 0 || restored > maxMemory {
		t.Errorf("want at most %d MB of memory", maxMemory>>10)
	}
}
