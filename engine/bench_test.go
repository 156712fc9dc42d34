package engine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// BenchmarkDatabaseCreate measures the creation of databases while the warm pool lasts, which is the usual case.
func BenchmarkDatabaseCreate(b *testing.B) {
	a := startEngine(b)
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		testenv.Eventually(b, "a full warm pool", a.Databases.WarmPoolReady)
		b.StartTimer()
		began := time.Now()
		db, _ := a.createDatabase(b, fmt.Sprintf("d%d", len(took)))
		took = append(took, time.Since(began))
		b.StopTimer()
		if _, err := a.Databases.Delete(b.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
			b.Fatal(err)
		}
		if _, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	reportPercentiles(b, took)
}

// databaseCount is the number of databases in the benchmarks of a whole appliance:
//
//	go test ./engine -run '^$' -bench Appliance -benchtime 3x -args -databases 50
var databaseCount = flag.Int("databases", 20, "how many databases the appliance of a benchmark has")

// BenchmarkApplianceStart measures the time from the start of an engine after a clean shutdown until all of its
// databases are available.
func BenchmarkApplianceStart(b *testing.B) {
	a, _ := fullAppliance(b)
	all, _ := a.databases(b)
	for b.Loop() {
		b.StopTimer()
		if err := a.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		a = startEngineOn(b, a.cfg)
		a.awaitAll(b, all)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(float64(len(all)), "databases")
}

// BenchmarkApplianceAdopt is BenchmarkApplianceStart after one that was killed.
func BenchmarkApplianceAdopt(b *testing.B) {
	a, _ := fullAppliance(b)
	all, _ := a.databases(b)
	for b.Loop() {
		b.StopTimer()
		a.abandon(b)
		b.StartTimer()
		a = startEngineOn(b, a.cfg)
		a.awaitAll(b, all)
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/adoption")
}

// fullAppliance creates an appliance with databaseCount databases.
func fullAppliance(b *testing.B) (*appliance, []databases.Connection) {
	b.Helper()
	cfg := testConfig(b, newDataDir(b))
	cfg.FirstPort, cfg.LastPort = testenv.Ports(b, 2**databaseCount)
	a := startEngineOn(b, cfg)
	connections := make([]databases.Connection, *databaseCount)
	for n := range connections {
		_, connections[n] = a.createDatabase(b, fmt.Sprintf("d%d", n))
	}
	return a, connections
}

func (a *appliance) awaitAll(b *testing.B, all []model.Database) {
	b.Helper()
	for _, db := range all {
		a.awaitStatus(b, db.ID, model.DatabaseAvailable, time.Minute)
	}
}

func BenchmarkDatabaseRestart(b *testing.B) {
	a := startEngine(b)
	db, _ := a.createDatabase(b, "shop")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := a.Databases.Restart(b.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	reportPercentiles(b, took)
}

// BenchmarkAllowlist measures the time until a change of an allow-list has taken effect, with open sessions that stay
// allowed.
func BenchmarkAllowlist(b *testing.B) {
	a := startEngine(b)
	db, c := a.createDatabase(b, "shop")
	for range 5 {
		connect(b, c)
	}
	lists := [][]string{{"127.0.0.1"}, {"127.0.0.0/8", "10.0.0.0/8"}}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := a.Databases.AllowlistSet(b.Context(), a.call(model.ActionAllowlistSet), db.ID, lists[len(took)%2]); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	reportPercentiles(b, took)
}

func reportPercentiles(b *testing.B, took []time.Duration) {
	p50, p95 := percentiles(took)
	b.ReportMetric(p50, "p50-ms")
	b.ReportMetric(p95, "p95-ms")
}

// percentiles returns the median and the 95th percentile in milliseconds.
func percentiles(took []time.Duration) (p50, p95 float64) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return ms(took[len(took)/2]), ms(took[len(took)*95/100])
}

// BenchmarkApplianceMemory measures the proportional set size of each idle database, and of this process, after every
// user has connected once.
func BenchmarkApplianceMemory(b *testing.B) {
	a, connections := fullAppliance(b)
	for _, c := range connections {
		run(b, c, "create table t as select generate_series(1, 1000) n")
	}
	testenv.Eventually(b, "a full pool", a.Databases.WarmPoolReady)
	for b.Loop() {
		a.Databases.SampleAll(b.Context())
	}
	debug.FreeOSMemory()
	instances := filepath.Join(a.cfg.DataDir, "instances")
	total, processes := 0, postgresProcesses(b, instances)
	for pid := range processes {
		total += proportionalKB(b, fmt.Sprint(pid))
	}
	b.ReportMetric(float64(total)/1024/float64(*databaseCount), "MB/database")
	b.ReportMetric(float64(len(processes))/float64(*databaseCount), "processes/database")
	b.ReportMetric(float64(proportionalKB(b, "self"))/1024, "MB-own")
}

// proportionalKB reads the PSS of a process.
func proportionalKB(b *testing.B, pid string) int {
	b.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0 // the process has ended
	}
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "Pss: %d kB", &kb); n == 1 {
			return kb
		}
	}
	b.Fatalf("no PSS in smaps_rollup of %s:\n%s", pid, text)
	return 0
}
