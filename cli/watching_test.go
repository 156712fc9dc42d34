package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// look requests a path outside the API.
func look(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// TestWatching runs the appliance with monitoring: metrics on their own
// address, and a webhook.
func TestWatching(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	told := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("webhook-signature") != "" {
			told <- string(body)
		}
	}))
	defer receiver.Close()
	address := freeAddress(t)
	m.start("--metrics-listen", address, "--webhook-url", receiver.URL+"/hook?token=hidden")
	public := strings.TrimSuffix(m.api, "/v1")
	for _, url := range []string{public + "/healthz", public + "/readyz", "http://" + address + "/healthz", "http://" + address + "/readyz"} {
		if status, body := look(t, url); status != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
	db := m.createDatabase("shop")
	if status, body := look(t, public+"/metrics"); status == http.StatusOK || strings.Contains(body, "holdfast_") {
		t.Errorf("the public address has metrics: %d", status)
	}
	_, text := look(t, "http://"+address+"/metrics")
	for _, line := range []string{
		`holdfast_databases{status="available"} 1`, `holdfast_http_requests_total{operation="database.create",status="200"} 1`, "go_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the metrics have no %s:\n%s", line, text)
		}
	}
	breakDown(t, m, db.ID)
	awaitMessage(t, told, "database.failed", db.ID)
	if strings.Contains(m.log.String(), "hidden") {
		t.Error("the webhook's URL is in the log")
	}
	if info, err := os.Stat(filepath.Join(m.dataDir, "webhook.secret")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret's file: %v, %v", info, err)
	}
}

// awaitMessage waits for a webhook message about a resource. There may be
// others, such as one about a nearly full disk.
func awaitMessage(t *testing.T, told <-chan string, about, id string) {
	t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case body := <-told:
			var message struct {
				Type string
				Data struct{ Resource struct{ ID string } }
			}
			if err := json.Unmarshal([]byte(body), &message); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if message.Type == about && message.Data.Resource.ID == id {
				return
			}
		case <-late:
			t.Fatalf("nobody was told of %s of %s", about, id)
		}
	}
}

// breakDown damages a database so that it cannot start.
func breakDown(t *testing.T, m *machine, id string) {
	t.Helper()
	dir := filepath.Join(m.dataDir, "instances", id, "1")
	if err := os.WriteFile(filepath.Join(dir, "postgresql.auto.conf"), []byte("nonsense_of_a_setting = 'x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(pid), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(postmaster, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
