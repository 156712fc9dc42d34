// Package testenv has what the tests of all packages need: the selection of long tests, and waiting.
package testenv

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// longVariable selects tests: unset the short ones, with any value the long ones too, and with "all" everything.
const longVariable = "HOLDFAST_LONG"

// Long skips a long test (crash loops, power cuts, soaks, upgrades and recoveries from beginning to end) unless
// HOLDFAST_LONG is set, as in .ci/run.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skip("a long test: set " + longVariable + "=1 to run it")
	}
}

// IsLong reports whether long tests run.
func IsLong() bool { return os.Getenv(longVariable) != "" }

// All skips what tests the same as something that .ci/run does, in more versions or combinations, unless HOLDFAST_LONG
// is "all", as in make test-all.
func All(t testing.TB) {
	t.Helper()
	if !IsAll() {
		t.Skip("more of the same: set " + longVariable + "=all to run it")
	}
}

// IsAll reports whether everything runs, and repetitions are many.
func IsAll() bool { return os.Getenv(longVariable) == "all" }

// Eventually polls until done returns true, and fails the test after a minute.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	Within(t, time.Minute, what, done)
}

// Within is Eventually with another limit. It returns the time waited.
func Within(t testing.TB, limit time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	if !Poll(limit, done) {
		t.Fatalf("after %s still not true: %s", limit, what)
	}
	return time.Since(began)
}

// Catch is Within for what is true only for a moment: it polls every millisecond.
func Catch(t testing.TB, limit time.Duration, what string, done func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	if !poll(limit, minPause, done) {
		t.Fatalf("after %s still not true: %s", limit, what)
	}
	return time.Since(began)
}

// Poll polls until done returns true, and reports whether it did within the limit. It pauses for a twentieth of the time
// that has passed, up to maxPause: polling takes processor time from what is waited for.
func Poll(limit time.Duration, done func() bool) bool { return poll(limit, maxPause, done) }

// minPause and maxPause are between two polls.
const minPause, maxPause = time.Millisecond, 20 * time.Millisecond

func poll(limit, longest time.Duration, done func() bool) bool {
	for began := time.Now(); !done(); {
		passed := time.Since(began)
		if passed > limit {
			return false
		}
		time.Sleep(min(max(passed/20, minPause), longest))
	}
	return true
}

// Extension reports whether the machine has an extension that is not part of PostgreSQL, as has says. Without it the
// log says what was not tested, and where HOLDFAST_EXTENSIONS names it the test fails.
func Extension(t testing.TB, name string, has bool) bool {
	t.Helper()
	if slices.Contains(strings.Fields(os.Getenv("HOLDFAST_EXTENSIONS")), name) && !has {
		t.Errorf("PostgreSQL does not have the extension %s, which was installed", name)
	} else if !has {
		t.Logf("NOT TESTED: this machine lacks the extension %s", name)
	}
	return has
}
