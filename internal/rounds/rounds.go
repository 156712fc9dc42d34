// Package rounds compares programs on a machine whose speed varies.
//
// Noise on a shared machine lasts for seconds to minutes, so two measurements that are far apart in time cannot be
// compared. Every arm is therefore measured once in each round, in a new random order, and the ratios are taken
// within rounds. A comparison reports the median of these ratios with the lowest and the highest.
//
// One arm is the first arm measured a second time (Itself). Its ratios would all be 1 on a quiet machine; their
// deviation is the spread of the benchmark, and no smaller difference is significant.
package rounds

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// Least is the number of rounds in one iteration of a benchmark. With fewer rounds, the lowest and highest ratio say
// little.
const Least = 7

// Itself is the name of the arm that measures the first arm a second time.
const Itself = "itself"

// An Arm is one of the compared programs. Measure returns a rate or a time, the same kind for all arms of a
// comparison.
type Arm struct {
	Name    string
	Measure func() float64
}

// A Comparison collects the measurements of its arms by round.
type Comparison struct {
	names  []string
	values [][]float64 // of each arm, by round
}

// Compare returns an empty comparison of the first name with each of the others,
// one of which must be Itself.
func Compare(names ...string) *Comparison {
	if slices.Index(names, Itself) < 1 {
		panic("rounds: no arm is the first one measured again")
	}
	return &Comparison{names: names, values: make([][]float64, len(names))}
}

// Round measures every arm once, in random order. The arms must have the names passed to Compare.
func (c *Comparison) Round(arms ...Arm) {
	for _, n := range rand.Perm(len(c.names)) {
		if arms[n].Name != c.names[n] {
			panic(fmt.Sprintf("rounds: arm %q instead of %q", arms[n].Name, c.names[n]))
		}
		c.values[n] = append(c.values[n], arms[n].Measure())
	}
}

// Report reports the ratios of the first arm to each of the others.
func (c *Comparison) Report(b *testing.B, what string) {
	b.Helper()
	for n, name := range c.names[1:] {
		Ratios(b, what, name, c.ratios(n+1)...)
	}
}

// tableVariable names a file to which Ratios appends rows of a Markdown table.
const tableVariable = "HOLDFAST_BENCH_TABLE"

// Ratios reports ratios of our figures to a peer's as metrics of b, as "ratio:", "lowest:" and "highest:" followed
// by what and the peer: "ratio:full-time/pgBackRest". A single ratio, such as one of sizes, does not vary and has no
// range.
func Ratios(b *testing.B, what, peer string, ratios ...float64) {
	b.Helper()
	ratio, lowest, highest := Median(ratios), slices.Min(ratios), slices.Max(ratios)
	b.ReportMetric(ratio, "ratio:"+what+"/"+peer)
	spread, better := "", "less"
	if len(ratios) > 1 {
		b.ReportMetric(lowest, "lowest:"+what+"/"+peer)
		b.ReportMetric(highest, "highest:"+what+"/"+peer)
		spread = fmt.Sprintf("%.2f to %.2f", lowest, highest)
	}
	if peer == Itself && (lowest > 1 || highest < 1) {
		spread += ", not reliable" // the measurement includes something other than the program
	}
	if strings.HasSuffix(what, "rate") {
		better = "more"
	}
	path := os.Getenv(tableVariable)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	words := strings.NewReplacer("Benchmark", "", "/", " ", "-", " ")
	_, err = fmt.Fprintf(f, "| %s: %s | %s | %.2f | %s | %s |\n", words.Replace(b.Name()), words.Replace(what), peer, ratio, spread, better)
	if err := errors.Join(err, f.Close()); err != nil {
		b.Fatal(err)
	}
}

// ratios returns the ratios of the first arm to arm n, by round.
func (c *Comparison) ratios(n int) []float64 {
	ratios := make([]float64, len(c.values[n]))
	for round, value := range c.values[n] {
		ratios[round] = c.values[0][round] / value
	}
	return ratios
}

// Names returns the names of the arms in the order passed to Compare.
func (c *Comparison) Names() []string { return c.names }

// Values returns the measurements of an arm by round.
func (c *Comparison) Values(name string) []float64 {
	return c.values[slices.Index(c.names, name)]
}

// Median returns the median of values, which must not be empty.
func Median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
