package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAutomate runs the example of docs/automate.sh against an appliance.
func TestAutomate(t *testing.T) {
	t.Parallel()
	needs(t, "bash", "curl", "jq", "openssl", "python3")
	script, err := os.ReadFile("../docs/automate.sh")
	if err != nil {
		t.Fatal(err)
	}
	if regexp.MustCompile(`(?m)(^|[;&|]|do|then)\s*sleep\b`).Match(script) {
		t.Error("the script sleeps")
	}
	m := newMachine(t)
	m.start("--webhook-allow-private")
	_, port, err := net.SplitHostPort(freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	export := filepath.Join(t.TempDir(), "shop.dump")
	cmd := exec.CommandContext(t.Context(), "bash", "../docs/automate.sh")
	cmd.Env = append(os.Environ(), "HOLDFAST_URL="+m.api, "HOLDFAST_API_KEY="+createKey(t, m, "--preset", "full_access", "--allow-dangerous"),
		"WEBHOOK_PORT="+port, "EXPORT_FILE="+export)
	var progress strings.Builder
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v:\n%s%s", err, out, progress.String())
	}
	for _, want := range []string{
		`^import: completed$`, `^schedule: \[21600,"`, `^log: .* ready to accept connections$`, `^cancel: (cancelled|completed)$`, `^webhook: verified export\.completed$`,
	} {
		if !regexp.MustCompile("(?m)" + want).Match(out) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	if !strings.Contains(progress.String(), "import: done 100%\n") || strings.Contains(progress.String(), "pending") {
		t.Errorf("the progress shown is wrong:\n%s", progress.String())
	}
	if head, err := os.ReadFile(export); err != nil || !strings.HasPrefix(string(head), "PGDMP") {
		t.Errorf("the export is no dump: %v", err)
	}
}
