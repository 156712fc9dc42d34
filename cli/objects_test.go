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
func download(t testing.TB, url string) (int, string) {
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

// TestObjectsOrigin checks downloads with their own listener, and the recovery
// of deleted objects.
func TestObjectsOrigin(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start("--objects-listen", "127.0.0.1:0", "--object-trash-retention", "1h")
	bucket := m.createBucket("files")
	objects := "/buckets/" + bucket + "/objects"
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
	var link struct{ URL, Method string }
	m.must("POST", "/buckets/"+bucket+"/upload-links", map[string]any{"key": "sent.txt"}, &link)
	sending, err := http.NewRequestWithContext(t.Context(), link.Method, link.URL, strings.NewReader("sent"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(sending)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	m.must("GET", objects+"/sent.txt", nil, &object)
	if status, body := download(t, object.URL); answer.StatusCode != http.StatusOK || strings.HasPrefix(link.URL, main) || body != "sent" {
		t.Errorf("uploaded by %s: %d, then %d %s", link.URL, answer.StatusCode, status, body)
	}
	origin, path, _ := strings.Cut(strings.TrimPrefix(object.URL, "http://"), "/")
	for _, url := range []string{main + "/" + path, "http://" + origin + "/", "http://" + origin + "/v1/openapi.json"} {
		if status, _ := download(t, url); status != http.StatusNotFound {
			t.Errorf("%s: %d", url, status)
		}
	}
}

// TestTrashOfObjects checks that deleted objects and buckets can be recovered,
// even if the appliance is killed right after it acknowledged the deletion.
func TestTrashOfObjects(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	flags := []string{"--object-trash-retention", "1h", "--warm", "0"} // a kill would leave the processes that fill the warm pool
	m.start(flags...)
	m.key = createKey(t, m, "--preset", "full_access", "--allow-dangerous")
	var bucket struct{ ID string }
	m.must("POST", "/buckets", map[string]any{"project": m.project(), "name": "files", "public": true}, &bucket)
	objects := "/buckets/" + bucket.ID + "/objects"
	var kept, alone struct {
		URL string `json:"public_url"`
	}
	m.must("POST", objects+"?key=kept", strings.NewReader("kept"), &kept)
	m.must("POST", objects+"?key=alone", strings.NewReader("alone"), &alone)
	gone := func(path string) {
		t.Helper()
		var deleted struct {
			Until time.Time `json:"recoverable_until"`
		}
		m.must("DELETE", path, nil, &deleted)
		if left := time.Until(deleted.Until); left < 50*time.Minute || left > time.Hour {
			t.Errorf("%s can be brought back until %s", path, deleted.Until)
		}
		m.kill()
		m.start(flags...)
	}
	trash := func(args ...string) (found []struct{ ID, Key, Name string }) {
		t.Helper()
		out, stderr, code := m.run("", append([]string{"admin", "trash"}, args...)...)
		if code != 0 {
			t.Fatalf("%s: %s", args, stderr)
		}
		if args[len(args)-1] == "--json" {
			if err := json.Unmarshal([]byte(out), &found); err != nil {
				t.Fatalf("%s: %s, %v", args, out, err)
			}
		}
		return found
	}
	gone(objects + "/alone")
	gone("/buckets/" + bucket.ID + "?force=true")
	for _, url := range []string{kept.URL, alone.URL} {
		if status, _ := download(t, url); status != http.StatusNotFound {
			t.Errorf("%s: %d", url, status)
		}
	}
	deleted := trash("objects", "--json")
	if len(deleted) != 1 || deleted[0].Key != "alone" {
		t.Fatalf("objects: %+v", deleted)
	}
	if _, stderr, code := m.run("", "admin", "trash", "restore-object", deleted[0].ID); code != 6 || !strings.Contains(stderr, "trash restore "+bucket.ID) {
		t.Errorf("an object of a deleted bucket: %d %s", code, stderr)
	}
	if buckets := trash("buckets", "--json"); len(buckets) != 1 || buckets[0].ID != bucket.ID || buckets[0].Name != "files" {
		t.Fatalf("buckets: %+v", buckets)
	}
	trash("restore-bucket", bucket.ID)
	trash("restore-object", deleted[0].ID)
	for url, want := range map[string]string{kept.URL: "kept", alone.URL: "alone"} {
		if status, body := download(t, url); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %s", url, status, body)
		}
	}
}

// TestInterruptedPipe checks that an interrupt ends a read from a pipe that
// sends no more.
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
		_ = cmd.Wait() // its exit code is checked
		late.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%s: exit code %d", args, code)
		}
	}
}
