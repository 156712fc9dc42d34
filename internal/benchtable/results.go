package main

import (
	"bufio"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/rounds"
)

// results are what benchmarks printed.
type results struct {
	cpu     string
	peers   []string // with their versions, as benchmarks log them
	failed  []string
	order   []string                      // benchmarks, as they came
	metrics map[string]map[string]float64 // of each, by unit
}

var (
	// A result may stand on a line of its own, when something was printed after
	// the benchmark's name.
	nameLine   = regexp.MustCompile(`^(Benchmark\S+)`)
	resultLine = regexp.MustCompile(`^(?:Benchmark\S+)?\s+\d+\t(.*)$`)
	peerLine   = regexp.MustCompile(`compared with (.+)$`)
	processors = regexp.MustCompile(`-\d+$`) // GOMAXPROCS, at the end of a name
)

func read(in io.Reader) (*results, error) {
	r := &results{metrics: map[string]map[string]float64{}}
	name := ""
	err := lines(in, func(line string) {
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			r.cpu = cpu
		}
		if peer := peerLine.FindStringSubmatch(line); peer != nil && !slices.Contains(r.peers, peer[1]) {
			r.peers = append(r.peers, peer[1])
		}
		if strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "FAIL\t") {
			r.failed = append(r.failed, line)
		}
		if found := nameLine.FindStringSubmatch(line); found != nil {
			name = processors.ReplaceAllString(found[1], "")
		}
		if found := resultLine.FindStringSubmatch(line); found != nil && name != "" {
			r.add(name, strings.Fields(found[1]))
		}
	})
	return r, err
}

// lines calls f for each line of in.
func lines(in io.Reader, f func(string)) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		f(scanner.Text())
	}
	return scanner.Err()
}

// add takes pairs of a value and its unit.
func (r *results) add(name string, pairs []string) {
	metrics := map[string]float64{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if value, err := strconv.ParseFloat(pairs[i], 64); err == nil {
			metrics[pairs[i+1]] = value
		}
	}
	r.order = append(r.order, name)
	r.metrics[name] = metrics
}

// row is one comparison: the median of the ratios, and their range.
type row struct {
	what, peer             string
	ratio, lowest, highest float64
	more                   bool // more is better; else less
}

// What internal/rounds reports of one comparison has these prefixes:
// "ratio:full-time/pgBackRest" is the median of ours to the peer's.
const (
	ratioPrefix   = "ratio:"
	lowestPrefix  = "lowest:"
	highestPrefix = "highest:"
)

// rows are all comparisons, in the order of the benchmarks. A ratio without a
// range, such as one of sizes, does not vary.
func (r *results) rows() (all []row) {
	for _, name := range r.order {
		metrics := r.metrics[name]
		for _, unit := range slices.Sorted(maps.Keys(metrics)) {
			compared, ok := strings.CutPrefix(unit, ratioPrefix)
			if !ok {
				continue
			}
			what, peer, _ := strings.Cut(compared, "/")
			one := row{
				what: words(name) + ": " + strings.ReplaceAll(what, "-", " "), peer: peer,
				ratio: metrics[unit], lowest: metrics[unit], highest: metrics[unit], more: strings.HasSuffix(what, "rate"),
			}
			if lowest, ranged := metrics[lowestPrefix+compared]; ranged {
				one.lowest, one.highest = lowest, metrics[highestPrefix+compared]
			}
			all = append(all, one)
		}
	}
	return all
}

// untrusted are the rows of an arm beside itself whose range does not include
// 1: what was measured there depends on something other than the program.
func untrusted(rows []row) (all []string) {
	for _, r := range rows {
		if r.peer == rounds.Itself && (r.lowest > 1 || r.highest < 1) {
			all = append(all, r.what)
		}
	}
	return all
}

// words turns "BenchmarkPut/1KiB-x8" into "Put 1KiB x8".
func words(name string) string {
	return strings.NewReplacer("/", " ", "-", " ").Replace(strings.TrimPrefix(name, "Benchmark"))
}
