package cli_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// soakFigures holds measurements of the appliance and its response times.
type soakFigures struct {
	m       *machine
	pid     int
	metrics string // URL of the metrics
	store   string // the directory of the copy off-site
	began   time.Time
	hostile hostileFigures

	mu      sync.Mutex
	cycle   int
	took    map[string][][]time.Duration // by kind and cycle
	samples []footprint
	rests   []footprint // one after each cycle
}

// footprint is the appliance's resource usage at one time.
type footprint struct {
	at                          time.Duration // since the start of the load
	cycle                       int
	resident, shared, anonymous int // MB: RSS, PSS, and the part of it that is anonymous
	files, goroutines           int
	ofBackups                   int     // open files of backups
	servers                     int     // postmasters of the appliance
	sharedMemory                int     // MB: POSIX shared memory of all servers of this machine
	busy, own                   float64 // seconds: of the machine's processors, of the appliance
}

func newSoakFigures(m *machine, metrics, store string) *soakFigures {
	return &soakFigures{m: m, pid: m.process.Process.Pid, metrics: metrics, store: store, took: map[string][][]time.Duration{}, began: time.Now()}
}

// String formats what is compared at rest.
func (p footprint) String() string {
	return fmt.Sprintf("%d goroutines, %d files (%d of them of backups), %d MB resident (%d MB anonymous), %d servers, %d MB of shared memory",
		p.goroutines, p.files, p.ofBackups, p.resident, p.anonymous, p.servers, p.sharedMemory)
}

// begin starts the next cycle.
func (f *soakFigures) begin(cycle int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cycle = cycle; cycle == 0 {
		f.began = time.Now()
	}
}

func (f *soakFigures) add(kind string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.took[kind]) <= f.cycle {
		f.took[kind] = append(f.took[kind], nil)
	}
	f.took[kind][f.cycle] = append(f.took[kind][f.cycle], took)
}

// count returns how often an act was performed.
func (f *soakFigures) count(kind string) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, took := range f.took[kind] {
		count += len(took)
	}
	return count
}

// sample measures repeatedly until over ends.
func (f *soakFigures) sample(over context.Context, every time.Duration) {
	for {
		select {
		case <-over.Done():
			return
		case <-time.After(every):
			now := f.measure()
			f.mu.Lock()
			f.samples = append(f.samples, now)
			f.mu.Unlock()
		}
	}
}

// measure reads the figures from the kernel and the appliance; -1 means
// unknown.
func (f *soakFigures) measure() footprint {
	dir := filepath.Join("/proc", strconv.Itoa(f.pid))
	p := footprint{at: time.Since(f.began), cycle: f.cycle, files: -1}
	rollup := fieldsOf(filepath.Join(dir, "smaps_rollup"))
	p.resident, p.shared, p.anonymous = rollup["Rss:"]>>10, rollup["Pss:"]>>10, rollup["Anonymous:"]>>10
	if entries, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		p.files = len(entries)
		for _, e := range entries {
			if name, _ := os.Readlink(filepath.Join(dir, "fd", e.Name())); strings.Contains(name, "/backups/") {
				p.ofBackups++
			}
		}
	}
	p.goroutines = f.askGoroutines()
	p.servers, p.sharedMemory = len(f.m.processes())-1, int(bytesOf("/dev/shm/PostgreSQL.*")>>20)
	p.busy, p.own = processorTime("/proc/stat", 1, 4), processorTime(filepath.Join(dir, "stat"), 13, 15)
	return p
}

// bytesOf returns how much the files of a pattern take, and what is below those that are directories.
func bytesOf(pattern string) (total int64) {
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error { // what disappears meanwhile takes nothing
			if err != nil || e.IsDir() {
				return nil
			}
			if info, err := e.Info(); err == nil {
				total += info.Sys().(*syscall.Stat_t).Blocks * 512
			}
			return nil
		})
	}
	return total
}

// restAfter records what is left after a cycle, and logs what the disk has.
func (f *soakFigures) restAfter(t *testing.T, p footprint) {
	f.rests = append(f.rests, p)
	var b strings.Builder
	for _, part := range []string{"instances", "warm", "backups", "blobs", "metadata", "holdfast.db", "offsite"} {
		fmt.Fprintf(&b, " %s %d,", part, bytesOf(filepath.Join(f.m.dataDir, part))>>20)
	}
	t.Logf("MB on the disk:%s the copy %d", b.String(), bytesOf(f.store)>>20)
}

// fieldsOf parses the numbers in a file of named lines.
func fieldsOf(path string) map[string]int {
	fields := map[string]int{}
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 {
			fields[words[0]], _ = strconv.Atoi(words[1])
		}
	}
	return fields
}

// processorTime sums columns of the first line of a file of proc(5) that counts
// in hundredths of a second.
func processorTime(path string, first, end int) (seconds float64) {
	text, _ := os.ReadFile(path)
	line, _, _ := strings.Cut(string(text), "\n")
	if fields := strings.Fields(line); len(fields) >= end {
		for _, field := range fields[first:end] {
			ticks, _ := strconv.Atoi(field)
			seconds += float64(ticks) / 100
		}
	}
	return seconds
}

func (f *soakFigures) askGoroutines() int {
	answer, err := http.Get(f.metrics)
	if err != nil {
		return -1
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if count, ok := strings.CutPrefix(lines.Text(), "go_goroutines "); ok {
			n, _ := strconv.Atoi(count)
			return n
		}
	}
	return -1
}

// report logs everything in two tables.
func (f *soakFigures) report(t *testing.T) {
	var b strings.Builder
	f.reportFootprint(&b)
	f.reportLatencies(&b)
	t.Logf("%s\n%s", &f.hostile, b.String())
}

// reportFootprint writes a line for each fifteenth of the run.
func (f *soakFigures) reportFootprint(b *strings.Builder) {
	const lines = 15
	fmt.Fprintf(b, "%8s %6s %8s %8s %8s %7s %7s %10s %8s %8s\n", "from", "cycle", "RSS MB", "PSS MB", "anon MB", "files", "most", "goroutines", "machine", "holdfast")
	for window := range slices.Chunk(f.samples, max(2, (len(f.samples)+lines-1)/lines)) {
		first, last := window[0], window[len(window)-1]
		median := func(of func(footprint) int) int { return medianOf(window, of) }
		seconds := (last.at - first.at).Seconds()
		files := func(p footprint) int { return p.files }
		fmt.Fprintf(b, "%8s %6d %8d %8d %8d %7d %7d %10d %7.0f%% %7.0f%%\n", first.at.Round(time.Second), first.cycle,
			median(func(p footprint) int { return p.resident }), median(func(p footprint) int { return p.shared }),
			median(func(p footprint) int { return p.anonymous }), median(files), slices.MaxFunc(window, func(a, b footprint) int { return a.files - b.files }).files,
			median(func(p footprint) int { return p.goroutines }), 100*(last.busy-first.busy)/seconds, 100*(last.own-first.own)/seconds)
	}
}

func medianOf(all []footprint, of func(footprint) int) int {
	values := make([]int, 0, len(all))
	for _, p := range all {
		values = append(values, of(p))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// reportLatencies writes a line for each kind, with each cycle's percentiles.
func (f *soakFigures) reportLatencies(b *strings.Builder) {
	fmt.Fprintf(b, "\nlatencies in ms, by cycle: p50 / p95 / p99 / longest\n%-18s %8s", "", "answers")
	for n := range f.cycle + 1 {
		fmt.Fprintf(b, " %30d", n)
	}
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(f.took)) {
		count := f.count(kind)
		total += count
		fmt.Fprintf(b, "\n%-18s %8d", kind, count)
		for _, took := range f.took[kind] {
			fmt.Fprintf(b, " %30s", percentiles(took))
		}
	}
	fmt.Fprintf(b, "\n%d in all", total)
}

func percentiles(took []time.Duration) string {
	if len(took) == 0 {
		return "-"
	}
	slices.Sort(took)
	at := func(percent int) float64 {
		return float64(took[min(len(took)-1, len(took)*percent/100)].Microseconds()) / 1000
	}
	return fmt.Sprintf("%.1f / %.1f / %.1f / %.0f", at(50), at(95), at(99), at(100))
}

// checkMemory checks that a long run uses no more anonymous memory in its last
// cycle than in the one before, and that it leaves no more shared memory. Mapped files are page cache.
func (f *soakFigures) checkMemory(t *testing.T) {
	if *soakFor < soakLong || len(f.samples) == 0 {
		return
	}
	const left = 10 // MB
	if n := len(f.rests); n > 1 && f.rests[n-1].sharedMemory > f.rests[n-2].sharedMemory+left {
		t.Errorf("the servers' shared memory is not flat: %d MB after the last cycle, %d MB after the one before", f.rests[n-1].sharedMemory, f.rests[n-2].sharedMemory)
	}
	of := func(cycle int) int {
		return medianOf(slices.DeleteFunc(slices.Clone(f.samples), func(p footprint) bool { return p.cycle != cycle }),
			func(p footprint) int { return p.anonymous })
	}
	const grown, spare = 1.25, 30 // MB
	if before, last := of(f.cycle-1), of(f.cycle); float64(last) > grown*float64(before)+spare {
		t.Errorf("the memory is not flat: %d MB of it anonymous in the last cycle, %d MB in the one before", last, before)
	}
}
