package meta

import (
	"os"
	"testing"
)

// helperEnv names what this test binary does when a test runs it as another
// process, in place of the tests.
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
