package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/cli/client/sandbox"
	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

// instantSchema is what templates have, for pgtestdb and for sandbox.New.
const instantSchema = "create table t as select n from generate_series(1, 1000) n; create index on t (n)"

// buildPgtestdb builds the program that measures pgtestdb.
func buildPgtestdb(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "pgtestdb")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join("testdata", "pgtestdb")
	if out, err := build.CombinedOutput(); err != nil {
		b.Logf("NOT MEASURED: pgtestdb, because it cannot be built: %v: %s", err, out)
		return ""
	}
	return path
}

// pgtestdbTest returns the median time of ten databases of pgtestdb, in the server that was started by hand.
func (i *instant) pgtestdbTest() float64 {
	if i.pgtestdb == "" {
		return 0
	}
	out, err := exec.Command(i.pgtestdb, "-port", i.templatePort, "-schema", instantSchema).Output()
	if err != nil {
		i.b.Fatal(err)
	}
	var values []float64
	for _, line := range strings.Fields(string(out)) {
		value, err := strconv.ParseFloat(line, 64)
		if err != nil {
			i.b.Fatal(err)
		}
		values = append(values, value)
	}
	return rounds.Median(values)
}

// inTest is a test that ends when end is called.
type inTest struct {
	*testing.B
	cleanups []func()
}

// Cleanup implements sandbox.TB.
func (t *inTest) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *inTest) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// test returns the median time of ten databases of sandbox.New and their first queries, in the private appliance, for
// tests that last that long. It notes that of sandbox.New alone.
func (i *instant) test(lasts time.Duration) float64 {
	i.b.Setenv("HOLDFAST_BINARY", program)
	var values, alone []float64
	for n := range 11 {
		t := &inTest{B: i.b}
		began := time.Now()
		db := sandbox.New(t, sandbox.Template{Hash: sandbox.Hash(instantSchema), Fill: func(ctx context.Context, db sandbox.Database) error {
			return executeOn(ctx, db.URL, instantSchema)
		}})
		made := since(began)
		i.query(db.URL)
		if n > 0 { // the first one may fill the template
			values, alone = append(values, since(began)), append(alone, made)
		}
		time.Sleep(lasts)
		t.end()
	}
	i.alone[lasts] = append(i.alone[lasts], rounds.Median(alone))
	return rounds.Median(values)
}

// bursts measures fifty creations at once and sixty one after another.
func (i *instant) bursts() {
	for _, burst := range []struct {
		name        string
		count, each int
	}{{"50 at once", 50, 50}, {"60 in a row", 60, 1}} {
		time.Sleep(10 * time.Second) // for the warm pool, and what was deleted before
		ids := make([]string, burst.count)
		took := make([]float64, burst.count)
		slots := make(chan struct{}, burst.each)
		began := time.Now()
		var all sync.WaitGroup
		for n := range burst.count {
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				start := time.Now()
				var made struct{ ID string }
				i.m.must("POST", "/databases", map[string]any{"name": fmt.Sprintf("b%d_%d", burst.count, n), "project": i.m.project()}, &made)
				ids[n], took[n] = made.ID, since(start)
			})
		}
		all.Wait()
		i.b.Logf("%-30s %6.0f ms in all, the slowest %.0f ms", burst.name, since(began), slices.Max(took))
		if burst.count == 60 {
			i.b.Logf("%-30s %6.1f MB for each idle database, %.0f MB for the appliance", "memory (PSS)", i.pssBelow(i.m.dataDir, "postgres")/60, i.pssBelow(i.m.dataDir, program))
		}
		for _, id := range ids {
			i.m.must("DELETE", "/databases/"+id, nil, nil)
		}
	}
}

// requests measures the requests of 60 creations alone, one a second.
func (i *instant) requests() {
	project := i.m.project()
	took := make([]float64, 60)
	for n := range took {
		time.Sleep(time.Second)
		var made struct{ ID string }
		began := time.Now()
		i.m.must("POST", "/databases", map[string]any{"name": fmt.Sprintf("r%d", n), "project": project}, &made)
		took[n] = since(began)
		i.m.must("DELETE", "/databases/"+made.ID, nil, nil)
	}
	slices.Sort(took)
	i.b.Logf("%-30s %6.0f ms in the middle (p50), all but one within %.0f ms (p98), the slowest %.0f ms", "create: the request", rounds.Median(took), took[58], took[59])
}

// cold measures from the start of `run` to that of its command when no private appliance runs.
func (i *instant) cold(cache string) {
	i.b.Setenv("HOLDFAST_PRIVATE_IDLE", "1s")
	var took []float64
	for range rounds.Least + 1 {
		testenv.Eventually(i.b, "the end of the private appliance", func() bool { return len(processesNaming(cache)) == 0 })
		took = append(took, i.run())
	}
	i.report("run-cold", took[1:])
}

// memory prints what the private appliance takes with its warm server and the tests' server.
func (i *instant) memory(cache string) {
	i.b.Logf("%-30s %6.0f MB for its servers, %.0f MB for the private appliance", "memory of run (PSS)", i.pssBelow(cache, "postgres"), i.pssBelow(cache, program))
}

// pssBelow returns the proportional set size, in MB, of the processes of that program whose command lines name the
// directory, and of the children of servers.
func (i *instant) pssBelow(dir, program string) (mb float64) {
	for _, pid := range processesNaming(dir) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		first, _, _ := strings.Cut(string(command), "\x00")
		if filepath.Base(first) != filepath.Base(program) {
			continue
		}
		mb += pss(pid)
		if program == "postgres" {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
			for _, child := range strings.Fields(string(text)) {
				if number, err := strconv.Atoi(child); err == nil {
					mb += pss(number)
				}
			}
		}
	}
	return mb
}

// pss returns the proportional set size of a process in MB, 0 if it has ended.
func pss(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(fields[1], 64)
			return kb / 1024
		}
	}
	return 0
}

// executeOn runs statements over a new connection.
func executeOn(ctx context.Context, url, statements string) error {
	out, err := exec.CommandContext(ctx, "psql", url, "-qXc", statements).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
