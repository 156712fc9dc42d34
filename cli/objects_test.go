package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// download returns the status and the bytes at an address.
func download(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// Downloads with a listener of their own, and deleted objects that come back.
func TestObjectsOrigin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--objects-listen", "127.0.0.1:0", "--object-trash-retention", "1h")
	var bucket struct{ ID string }
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "files"}, &bucket)
	objects := "/buckets/" + bucket.ID + "/objects"
	m.must("POST", objects+"?key=page.html", strings.NewReader("<script>"), nil)
	var object struct {
		URL string `json:"download_url"`
	}
	m.must("GET", objects+"/page.html", nil, &object)
	main := strings.TrimSuffix(m.api, "/v1")
	if strings.HasPrefix(object.URL, main) {
		t.Fatalf("the object is served where the console is: %s", object.URL)
	}
	if status, body := download(t, object.URL); status != http.StatusOK || body != "<script>" {
		t.Errorf("%s: %d %s", object.URL, status, body)
	}
	origin, path, _ := strings.Cut(strings.TrimPrefix(object.URL, "http://"), "/")
	for _, url := range []string{main + "/" + path, "http://" + origin + "/", "http://" + origin + "/v1/openapi.json"} {
		if status, _ := download(t, url); status != http.StatusNotFound {
			t.Errorf("%s: %d", url, status)
		}
	}

	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	m.must("DELETE", objects+"/page.html", nil, nil)
	if status, _ := download(t, object.URL); status != http.StatusNotFound {
		t.Errorf("a deleted object: %d", status)
	}
	out, stderr, _ := m.run("", "admin", "trash", "objects", "--json")
	var deleted []struct{ ID, Key string }
	if err := json.Unmarshal([]byte(out), &deleted); err != nil || len(deleted) != 1 || deleted[0].Key != "page.html" {
		t.Fatalf("the trash: %s %s, %v", out, stderr, err)
	}
	if _, stderr, code := m.run("", "admin", "trash", "restore-object", deleted[0].ID); code != 0 {
		t.Errorf("restore from the trash: %s", stderr)
	}
	if status, body := download(t, object.URL); status != http.StatusOK || body != "<script>" {
		t.Errorf("an object that came back: %d %s", status, body)
	}
}

// What is read from a pipe that says no more is ended by an interrupt.
func TestInterruptedPipe(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "files"}, nil)
	for _, args := range [][]string{{"object", "put", "-", "files/stdin"}, {"api", "POST", "/buckets", "--data", "@-"}} {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "HOLDFAST_URL=" + m.api, "HOLDFAST_API_KEY=" + m.key}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write(make([]byte, 1<<20)); err != nil { // more than a pipe holds: it is being read
			t.Error(err)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // its exit code is looked at
		late.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}
