package cli_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"holdfast/cli"
)

// TestEveryCommandExplainsItself requests the help of every command, and passes
// each an unknown flag.
func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	seen := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.Runnable() {
			seen++
			t.Run(strings.Join(path, " "), func(t *testing.T) {
				t.Parallel()
				explainsItself(t, cmd, path)
			})
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(cli.NewRoot())
	if seen < 60 {
		t.Errorf("only %d commands were found", seen)
	}
}

func explainsItself(t *testing.T, cmd *cobra.Command, path []string) {
	t.Helper()
	out, err := exec.Command(program, append(path, "--help")...).Output()
	if err != nil || !strings.Contains(string(out), "Usage:\n  "+cmd.CommandPath()) {
		t.Errorf("--help: %v\n%s", err, out)
	}
	if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
		t.Errorf("it says of itself %q", cmd.Short)
	}
	text, err := exec.Command(program, append(path, "--no-such-flag")...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || !strings.Contains(string(text), "--help") {
		t.Errorf("a flag there is not: %v\n%s", err, text)
	}
}
