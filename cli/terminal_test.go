package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// TestErrorsDoNotDriveTheTerminal: what an appliance answers reaches the
// terminal as text, whatever is in it.
func TestErrorsDoNotDriveTheTerminal(t *testing.T) {
	t.Parallel()
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error": {"code": "forbidden", "message": "no\u001b]0;owned\u0007 \u009b2J \u202eway"}}`))
	}))
	defer hostile.Close()
	cmd := exec.Command(program, "db", "list")
	cmd.Env = []string{"HOME=" + t.TempDir(), "HOLDFAST_URL=" + hostile.URL, "HOLDFAST_API_KEY=sk_live_x"}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run() // its exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(stderr.String(), "owned") || strings.ContainsAny(stderr.String(), "\x1b\x07\u009b\u202e") {
		t.Errorf("exit code %d: %q", code, stderr.String())
	}
}
