package postgrestest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Main runs the tests of a package and exits with status 1 if a test failed or a
// PostgreSQL process was left running. It runs more tests at a time than there are
// processors, because they spend much of their time waiting for servers; -parallel
// overrides this.
func Main(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU())); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if fuzzing() {
		// The fuzzer restarts the test binary, which another user could not do; fuzz
		// targets need no PostgreSQL.
		return m.Run()
	}
	tmp, err := becomeOrdinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgrestest:", err)
		return 1
	}
	code := m.Run()
	if left := leftovers(tmp); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "postgrestest: PostgreSQL processes left running, now killed:\n\t%s\n", strings.Join(left, "\n\t"))
		code = 1
	}
	if err := os.RemoveAll(tmp); err != nil {
		fmt.Fprintln(os.Stderr, "postgrestest: remove temporary files:", err)
		code = 1
	}
	return code
}

func fuzzing() bool {
	for _, arg := range os.Args[1:] {
		if name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); (name == "test.fuzz" && value != "") || name == "test.fuzzworker" {
			return true
		}
	}
	return false
}
