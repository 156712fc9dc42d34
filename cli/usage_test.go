package cli_test

import (
	"os/exec"
	"testing"
)

// TestWrongUsage checks that every command rejects what it does not understand
// with one line and the usage exit code.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"serve", "x"}, "unknown command"},
		{[]string{"serve", "--no-such"}, "unknown flag"},
		{[]string{"serve", "--warm", "x"}, "--warm"},
		{[]string{"serve", "--warm", "100"}, "warm: must be"},
		{[]string{"serve", "--user", "no-such-user", "--listen", "127.0.0.1:0"}, "--user no-such-user"},
		{[]string{"doctor", "x"}, "unknown command"},
		{[]string{"doctor", "--listen", "x"}, "host:port"},
		{[]string{"admin", "no-such"}, "unknown command"},
		{[]string{"admin", "audit", "export", "x"}, "unknown command"},
		{[]string{"admin", "audit", "verify", "x"}, "unknown command"},
		{[]string{"admin", "org", "create"}, "accepts 1 arg"},
		{[]string{"admin", "key", "create", "--expires", "soon"}, "--expires"},
		{[]string{"admin", "database", "set", "shop", "x"}, "NAME=VALUE"},
		{[]string{"admin", "export-all"}, "name the one file"},
		{[]string{"backup", "verify"}, "one directory"},
		{[]string{"backup", "extract", "x"}, "--out"},
		{[]string{"run"}, "which command"},
		{[]string{"run", "--name", "!", "--", "true"}, "name: must"},
		{[]string{"db", "list", "x"}, "unknown command"},
		{[]string{"db", "create"}, "accepts 1 arg"},
		{[]string{"login", "--url", "x"}, "url"},
		{[]string{"exit-codes", "x"}, "unknown command"},
		{[]string{"completion", "tcsh"}, "unknown command"},
		{[]string{"completion", "bash", "x"}, "unknown command"},
		{[]string{"no-such"}, "unknown command"},
		{[]string{"help", "no-such"}, "unknown command"},
		{[]string{"help", "admin", "no-such"}, "unknown command"},
	} {
		expectRefusal(t, 2, c.says, c.args...)
	}
	for _, args := range [][]string{{}, {"admin"}, {"completion"}, {"db"}, {"help"}, {"help", "admin", "key", "create"}} {
		if text, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Errorf("the help of %v: %v\n%s", args, err, text)
		}
	}
}
