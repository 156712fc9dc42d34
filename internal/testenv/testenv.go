// Package testenv has what tests of all packages need: which of them run, and how
// to wait.
package testenv

import (
	"os"
	"testing"
	"time"
)

const longVariable = "HOLDFAST_LONG"

// Long skips a test that takes long (crash loops, power cuts, soaks) unless
// HOLDFAST_LONG is set, as .ci/run sets it.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv(longVariable) == "" {
		t.Skip("a long test: set " + longVariable + "=1 to run it")
	}
}

// Eventually polls until done returns true, and fails the test after a minute.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still not true: %s", what)
		}
	}
}
