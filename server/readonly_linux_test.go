package server

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadOnlyDisk makes the file system read-only under a running server, as the kernel does when a disk has
// errors: uploads are rejected with an explanation, and existing objects are served.
func TestReadOnlyDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the file system this test needs")
	}
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a file system cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	h := startHoldfast(t, data, nil)
	upload := func(key string) (int, string) {
		answer, err := http.DefaultClient.Do(h.request(http.MethodPost, "objects?key="+key, bodyOf(key)))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	large := "a"
	for len(bodyOf(large)) < 100_000 {
		large += "a"
	}
	if status, text := upload("before"); status != http.StatusOK {
		t.Fatal(text)
	}
	h.stop()
	if out, err := exec.Command("mount", "-o", "bind", filepath.Join(dir, "data", "blobs", "incoming"), filepath.Join(dir, "data", "blobs", "incoming")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", filepath.Join(dir, "data", "blobs", "incoming")).Run() })
	h = startHoldfast(t, data, h)
	if out, err := exec.Command("mount", "-o", "remount,bind,ro", filepath.Join(dir, "data", "blobs", "incoming")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if status, text := upload(large); status != http.StatusForbidden || !strings.Contains(text, "cannot be written to") {
		t.Errorf("a large upload: %d %s", status, text)
	}
	h.mustServe(t, []string{"before"})
	h.stop()
}
