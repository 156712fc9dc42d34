package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// The server's logger is no login: nothing waits for it, not even in the moment after the start, when it had no title.
func TestLoggerIsNoLogin(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	isLogger := func(pid int) bool {
		title, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.Contains(string(title), ": logger")
	}
	all, others := postgres.ProcessesOf(d.Spec.Dir), postgres.LoginsOf(d.Spec.Dir)
	if !slices.ContainsFunc(all, isLogger) {
		t.Fatalf("none of the processes %v is the logger", all)
	}
	for _, pid := range others {
		if isLogger(pid) {
			t.Errorf("process %d, the logger, is taken for a login", pid)
		}
	}
}
