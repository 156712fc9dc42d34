package meta

import (
	"os"
	"testing"
)

// helperEnv selects what this test binary does instead of the tests when a test runs it
// as another process.
const helperEnv = "HOLDFAST_META_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "hold":
		holdOpen(os.Args[1])
	case "commit":
		commitUntilKilled(os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
}
