package backup

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"holdfast/backup/repository"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// maxMemory is the maximum memory of the appliance, whatever the size.
const maxMemory = 150 << 10 // KiB

// TestMemory takes and restores backups of a few hundred megabytes in a separate process and checks its peak memory.
func TestMemory(t *testing.T) {
	testenv.Long(t) // creates a database of 300 MB
	if runtime.GOOS != "linux" || raceDetector {
		t.Skip("reads /proc/self/status, which the race detector multiplies")
	}
	c := newCluster(t)
	c.pgbench(15)
	// The same amount again, barely compressible: the output is about as large as the input.
	c.query("create table noise as select gen_random_uuid() a, gen_random_uuid() b, gen_random_uuid() c from generate_series(1, 900000)")
	dir := t.TempDir()
	out := postgrestest.Run(t, helper("memory", helperArgs{URL: c.url("postgres"), Repository: filepath.Join(dir, "repository"), Dir: filepath.Join(dir, "r")}))
	var taken, restored int64
	if _, err := fmt.Sscan(out, &taken, &restored); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%d MB in memory at most, after the restore %d MB", taken>>10, restored>>10)
	if taken == 0 || restored > maxMemory {
		t.Errorf("want at most %d MB of memory", maxMemory>>10)
	}
}

// allPages has every page of a file of 1 GB changed.
type allPages struct{}

func (allPages) Pages(string) ([]uint32, bool) {
	pages := make([]uint32, pagesPerSegment)
	for n := range pages {
		pages[n] = uint32(n)
	}
	return pages, true
}

// TestMemoryOfChanges prepares to copy 200 GB with every page changed.
func TestMemoryOfChanges(t *testing.T) {
	entries := make([]repository.Entry, 200)
	before := &base{files: map[string]*repository.Entry{}, changes: allPages{}}
	for n := range entries {
		entries[n] = repository.Entry{Path: fmt.Sprintf("base/5/%d", 16384+n), Size: pagesPerSegment * pageSize}
		before.files[entries[n].Path] = &entries[n]
	}
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	at := inUse()
	p := &progress{}
	c := newCopying(&taking{server: &server{}, base: before, progress: p}, entries)
	if more := inUse() - at; more > 20<<20 {
		t.Errorf("%d MB are kept", more>>20)
	}
	if want := int64(len(entries)) * pagesPerSegment * pageSize; p.total != want {
		t.Errorf("%d bytes are expected to be read, want %d", p.total, want)
	}
	runtime.KeepAlive(c)
}
