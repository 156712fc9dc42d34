package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReadmeTour pastes the README's tour into a shell.
func TestReadmeTour(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "psql"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("the tour needs %s: %v", tool, err)
			}
			t.Skipf("the tour needs %s", tool)
		}
	}
	m := newMachine(t)
	m.start()
	script := strings.ReplaceAll(tour(t), "http://127.0.0.1:8432/v1", m.api)
	shell := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	shell.Env = append(os.Environ(), "KEY="+m.key)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"DROP TABLE", "1000", "5005000", "hello, world"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tour did not show %q:\n%s", want, out)
		}
	}
}

// tour returns the longest block of shell commands in the README.
func tour(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	longest := ""
	for i, block := range strings.Split(string(readme), "```") {
		if i%2 == 1 && strings.HasPrefix(block, "sh\n") && len(block) > len(longest) {
			longest = strings.TrimPrefix(block, "sh\n")
		}
	}
	return longest
}
