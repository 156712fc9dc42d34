package cli_test

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestBundled uses the result of `make bundle` in a root directory that
// contains only a C library and a shell, in a network with only loopback. `make
// test-bundle` runs it; it needs root.
func TestBundled(t *testing.T) {
	binary := os.Getenv("HOLDFAST_BUNDLED")
	if binary == "" {
		t.Skip("`make test-bundle` runs this")
	}
	root := emptyRoot(t)
	copyInto(t, root, binary, "/bin/holdfast", 0o755)
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program with PostgreSQL inside has %d MB", info.Size()>>20)
	copyInto(t, root, "testdata/bundled.sh", "/bundled.sh", 0o644)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// With --pid and --kill-child, no process outlives the test.
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec", `
		ip link set lo up
		mount -t proc proc "$0/proc"
		mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
		for device in null zero urandom; do touch "$0/dev/$device"; mount --bind /dev/$device "$0/dev/$device"; done
		exec chroot "$0" /bin/sh -eu /bundled.sh`, root)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "HOLDFAST_DATA_DIR=/data"}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "everything works") {
		t.Errorf("it ended with %v", err)
	}
}

// emptyRoot creates a root directory with the C library, a shell and little
// else, and checks that it contains no PostgreSQL.
func emptyRoot(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("another root directory and network take root")
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "dev/shm", "etc", "proc", "tmp", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"sh", "cat", "sleep", "head", "ls"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		copyInto(t, root, path, "/bin/"+program, 0o755)
		for _, library := range libraries(t, path) {
			copyInto(t, root, library, library, 0o755)
		}
	}
	for _, name := range []string{"libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2"} {
		for _, library := range libraries(t, "/bin/sh") { // the C library's others are in the same directory
			if path := filepath.Join(filepath.Dir(library), name); exists(path) {
				copyInto(t, root, path, path, 0o755)
			}
		}
	}
	copyTree(t, root, "/usr/lib/locale/C.utf8") // belongs to the C library
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n",
		"etc/group":  "root:x:0:\nnogroup:x:65534:\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// libraries returns the full paths of the libraries that a program is linked
// with.
func libraries(t *testing.T, program string) (paths []string) {
	t.Helper()
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", program, err)
	}
	for field := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(field, "/") {
			paths = append(paths, field)
		}
	}
	return paths
}

func copyTree(t *testing.T, root, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			copyInto(t, root, path, path, 0o644)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyInto(t *testing.T, root, from, to string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	to = filepath.Join(root, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, mode); err != nil {
		t.Fatal(err)
	}
}
