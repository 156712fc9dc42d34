package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

// TestErrorsDoNotDriveTheTerminal checks that an appliance's response reaches
// the terminal as text, whatever it contains.
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
	_ = cmd.Run() // its exit code is checked
	if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(stderr.String(), "owned") || strings.ContainsAny(stderr.String(), "\x1b\x07\u009b\u202e") {
		t.Errorf("exit code %d: %q", code, stderr.String())
	}
}

// TestAnotherServer checks that a response that is not the API's is not printed
// to a terminal and not taken for a success.
func TestAnotherServer(t *testing.T) {
	t.Parallel()
	const page, status = "<html>\x1b]0;owned\x07", `{"status": "ok"}`
	for _, c := range []struct {
		answer string
		args   []string
	}{
		{page, []string{"api", "GET", "/databases"}},
		{page, []string{"whoami"}},
		{status, []string{"whoami"}},
		{status, []string{"db", "url", "db_01k6zv7r9pxa3c5n8m2q4t6w8y"}},
	} {
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.answer)) }))
		defer other.Close()
		cmd := exec.Command(program, c.args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "HOLDFAST_URL=" + other.URL, "HOLDFAST_API_KEY=sk_live_x"}
		out, _ := cmd.CombinedOutput() // its exit code is checked
		code := cmd.ProcessState.ExitCode()
		if code != 8 || strings.ContainsAny(string(out), "\x1b\x07") || !strings.Contains(string(out), "not holdfast's API") {
			t.Errorf("%s of %q: exit code %d: %q", c.args, c.answer, code, out)
		}
	}
}
