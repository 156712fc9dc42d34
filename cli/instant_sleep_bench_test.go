package cli_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/internal/rounds"
	"holdfast/internal/testenv"
)

var sleepers = flag.Int("sleepers", 500, "how many databases the appliance of the benchmark of sleep has")

// awake is how many databases do not sleep in it.
const awake = 10

// BenchmarkInstantSleep measures, on XFS and in milliseconds, the wakening of a database until its first query is answered,
// the slowest of 100 clients that wake one at once, and the start of an appliance with many databases of which ten are awake:
// until it serves its API, and until the ten have answered a query.
// It ends with what all of them take in memory.
func BenchmarkInstantSleep(b *testing.B) {
	if least := awake + 2*rounds.Least; *sleepers < least {
		b.Fatalf("-sleepers must be %d or more", least)
	}
	m := newMachine(b)
	m.moveToXFS(b, 60<<30)
	m.ports = portRange(b, *sleepers+20)
	m.start("--budgets", "create_database=10000/1m", "--trash-retention", "0", "--backup-interval", "0")
	m.key = createKey(b, m, "--preset", "full_access", "--allow-dangerous")
	i := &instant{b: b, m: m}
	urls := make([]string, *sleepers)
	for n := range urls {
		var made struct {
			Credentials struct {
				URL string `json:"connection_url"`
			}
		}
		settings := map[string]any{"name": fmt.Sprintf("d%d", n), "project": m.project()}
		if n >= awake {
			settings["sleep_after_seconds"] = 10
		}
		m.must("POST", "/databases", settings, &made)
		urls[n] = made.Credentials.URL
	}
	i.awaitSleep()
	for range b.N {
		var wakes, crowds, starts, answers []float64
		for n := range rounds.Least {
			began := time.Now()
			i.query(urls[awake+2*n])
			wakes = append(wakes, since(began))
			crowds = append(crowds, i.crowd(urls[awake+2*n+1]))
		}
		i.awaitSleep()
		for range rounds.Least {
			m.stop()
			began := time.Now()
			m.start("--backup-interval", "0")
			starts = append(starts, since(began))
			for _, url := range urls[:awake] {
				testenv.Eventually(b, "a database of an appliance that has started", func() bool { return firstQuery(b.Context(), url) == nil })
			}
			answers = append(answers, since(began))
		}
		i.report("wake", wakes)
		i.report("wake-by-100-clients", crowds)
		i.report(fmt.Sprintf("start-with-%d", *sleepers), starts)
		i.report(fmt.Sprintf("start-with-%d-until-all-answer", *sleepers), answers)
	}
	b.Logf("%-30s %6.0f MB for %d servers, %.0f MB for the appliance", "memory (PSS)", i.pssBelow(m.dataDir, "postgres"), len(m.postmasters()), i.pssBelow(m.dataDir, program))
}

// awaitSleep waits until only the databases that do not sleep have a server.
func (i *instant) awaitSleep() {
	testenv.Within(i.b, 10*time.Minute, "sleep", func() bool { return len(i.m.postmasters()) == awake })
}

// crowd returns how long the slowest of 100 clients that connect at once waits for its first query.
func (i *instant) crowd(url string) float64 {
	took := make([]float64, 100)
	var all sync.WaitGroup
	for n := range took {
		all.Go(func() {
			began := time.Now()
			if err := firstQuery(i.b.Context(), url); err != nil {
				i.b.Error(err)
			}
			took[n] = since(began)
		})
	}
	all.Wait()
	return slices.Max(took)
}

// report reports the median of measurements in milliseconds, with the lowest and the highest.
func (i *instant) report(name string, values []float64) {
	i.b.ReportMetric(rounds.Median(values), name+"-ms")
	i.b.Logf("%-30s %6.0f ms, %.0f to %.0f", name, rounds.Median(values), slices.Min(values), slices.Max(values))
}
