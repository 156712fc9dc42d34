// Package testenv says which tests run in which surroundings.
package testenv

import (
	"os"
	"testing"
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
