package postgrestest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/internal/testenv"
)

// Main runs the tests of a package and exits with status 1 if a test failed or a
// PostgreSQL process was left running.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if testenv.Argument("test.fuzz") != "" || testenv.Argument("test.fuzzworker") != "" {
		// The fuzzer restarts the test binary, which another user could not do; fuzz
		// targets need no PostgreSQL.
		return m.Run()
	}
	if err := testenv.Prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "postgrestest:", err)
		return 1
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
