package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/rounds"
)

// benchedMachine is an appliance with a database for pgbench.
type benchedMachine struct {
	*machine
	url string
}

func startBenched(b *testing.B, flags ...string) *benchedMachine {
	b.Helper()
	return benched(b, newMachine(b), flags...)
}

func benched(b *testing.B, m *machine, flags ...string) *benchedMachine {
	b.Helper()
	m.start(append(flags, "--backup-interval", "0", "--no-verification")...)
	n := &benchedMachine{m, m.connectionURL(m.createDatabase("bench").ID)}
	n.pgbench(b, "-i", "-q", "-s", "10")
	return n
}

var tps = regexp.MustCompile(`tps = ([0-9.]+) `)

// pgbench runs pgbench and returns the transactions a second, if it measures.
func (n *benchedMachine) pgbench(b *testing.B, args ...string) float64 {
	b.Helper()
	out, err := exec.CommandContext(b.Context(), filepath.Join(postgrestest.Binaries(b).Dir, "pgbench"), append(args, n.url)...).CombinedOutput()
	if err != nil {
		b.Fatalf("pgbench: %v: %s", err, out)
	}
	found := tps.FindSubmatch(out)
	if found == nil {
		return 0
	}
	rate, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}

var memory = regexp.MustCompile(`(Rss|Anonymous): +([0-9]+) kB`)

// anonymous returns the memory in MB that the appliance has for itself.
func (n *benchedMachine) anonymous(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", n.process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, found := range memory.FindAllSubmatch(text, -1) {
		if kilobytes, err := strconv.ParseFloat(string(found[2]), 64); err == nil && string(found[1]) == "Anonymous" {
			return kilobytes / 1024
		}
	}
	b.Fatalf("no memory in %s", text)
	return 0
}

// BenchmarkOffsiteCommits compares the transactions of 8 clients of an appliance that is copied to an S3 server with those of
// one that is not, and their memory: after the load, as both rest.
func BenchmarkOffsiteCommits(b *testing.B) {
	m := newMachine(b)
	with := benched(b, m, m.prepareBucket(b).serveFlags()...)
	without := startBenched(b)
	measure := func(n *benchedMachine) func() float64 {
		return func() float64 { return n.pgbench(b, "-n", "-c", "8", "-j", "2", "-T", "3") }
	}
	commits := rounds.Compare("with a copy", rounds.Itself, "without")
	var underLoad []float64
	for b.Loop() {
		for range rounds.Least {
			commits.Round(rounds.Arm{Name: "with a copy", Measure: measure(with)}, rounds.Arm{Name: rounds.Itself, Measure: measure(with)}, rounds.Arm{Name: "without", Measure: measure(without)})
			underLoad = append(underLoad, with.anonymous(b)-without.anonymous(b))
		}
	}
	commits.Report(b, "commit-rate")
	b.ReportMetric(rounds.Median(underLoad), "MB-more/after-load")
	rest, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	<-rest.Done()
	b.ReportMetric(with.anonymous(b), "MB/with")
	b.ReportMetric(without.anonymous(b), "MB/without")
}

// BenchmarkOffsiteLoss kills an appliance under load ten times, recovers it on another data directory, and reports how many
// seconds of rows and of objects are lost, and how long the recovery took.
func BenchmarkOffsiteLoss(b *testing.B) {
	var rowsLost, objectsLost, answers, available []float64
	for b.Loop() {
		for n := range 10 {
			old := newMachine(b)
			c := old.prepareBucket(b)
			l := loseAndRecover(b, old, c)
			b.Logf("kill %d: %+v", n+1, l)
			rowsLost, objectsLost = append(rowsLost, l.rows.Seconds()), append(objectsLost, l.objects.Seconds())
			answers, available = append(answers, l.answers.Seconds()), append(available, l.available.Seconds())
		}
	}
	for name, values := range map[string][]float64{"rows-lost": rowsLost, "objects-lost": objectsLost, "api": answers, "database": available} {
		lowest, highest := values[0], values[0]
		for _, v := range values {
			lowest, highest = min(lowest, v), max(highest, v)
		}
		b.ReportMetric(rounds.Median(values), "s/"+name)
		b.ReportMetric(lowest, "lowest-s/"+name)
		b.ReportMetric(highest, "highest-s/"+name)
	}
}

// loss is what a kill cost.
type loss struct {
	rows, objects      time.Duration // that were acknowledged and are missing
	answers, available time.Duration // since the start of the recovery, until the API and the database did
}

// loseAndRecover kills a machine under load and recovers it elsewhere.
func loseAndRecover(b *testing.B, old *machine, c copied) (lost loss) {
	b.Helper()
	old.start(c.serveFlags()...)
	shop, bucket := old.prepareLoad(b)
	var l acknowledged
	endLoad := l.load(b, old, old.connectionURL(shop.ID), bucket)
	time.Sleep(4 * time.Second) // load, of which the last seconds may be lost
	killed := time.Now()
	old.killAll()
	endLoad()
	fresh := old.elsewhere()
	fresh.env = old.env
	began := time.Now()
	fresh.recoverFrom(c)
	lost.answers = time.Since(began)
	fresh.awaitAvailable(shop.ID)
	lost.available = time.Since(began)
	lost.rows, lost.objects = l.holdsUntil(b, fresh, shop.ID, bucket, killed.Add(-allowedLoss), killed)
	fresh.stop()
	return lost
}
