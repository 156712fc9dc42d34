package durable

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const helperEnv = "HOLDFAST_DURABLE_HELPER"

func TestMain(m *testing.M) {
	syscall.Umask(0o077) // the modes below must not depend on it
	switch os.Getenv(helperEnv) {
	case "forever":
		publishForever(os.Args[1])
	case "once":
		publishTraced(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

func expectFile(t *testing.T, path, want string, mode fs.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	info, statErr := os.Lstat(path)
	if err != nil || statErr != nil || string(data) != want || info.Mode() != mode {
		t.Errorf("%s holds %q with the mode %v, %v %v, want %q with %v", filepath.Base(path), data, info.Mode(), err, statErr, want, mode)
	}
}

// expectOnly checks that dir has exactly these names.
func expectOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the directory has %q, want %q", got, names)
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o400, 0o666} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "secret.key")
			for _, data := range []string{"first", "", "a longer third", "4"} {
				if err := WriteFile(path, []byte(data), mode); err != nil {
					t.Fatal(err)
				}
				expectFile(t, path, data, mode)
				expectOnly(t, dir, "secret.key")
			}
		})
	}
}

func TestWriteFileReplaces(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(path string) error{
		"a file of another mode":      func(path string) error { return os.WriteFile(path, []byte("old"), 0o644) },
		"a leftover of a crash":       func(path string) error { return os.WriteFile(path+".new", []byte("half of something long"), 0o600) },
		"a leftover others can read":  func(path string) error { return writeOpen(path + ".new") },
		"a leftover nobody can write": func(path string) error { return os.WriteFile(path+".new", nil, 0) },
		"a link":                      func(path string) error { return os.Symlink(path+".target", path) },
		"a link as a leftover":        func(path string) error { return os.Symlink(path+".target", path+".new") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "secret.key")
			if err := before(path); err != nil {
				t.Fatal(err)
			}
			if err := WriteFile(path, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			expectFile(t, path, "new", 0o600)
			expectOnly(t, dir, "secret.key")
		})
	}
}

func writeOpen(path string) error {
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o666)
}

// TestWriteFileOpenElsewhere: a reader that has the old file open keeps the old file.
func TestWriteFileOpenElsewhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "conf")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 8)
	if n, _ := f.Read(data); string(data[:n]) != "old" {
		t.Errorf("the open file reads %q", data[:n])
	}
}

func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		before func(path string) error
		left   []string
	}{
		{"no directory", func(path string) error { return os.Remove(filepath.Dir(path)) }, nil},
		{"a directory of that name", func(path string) error { return os.Mkdir(path, 0o700) }, []string{"conf"}},
		{"a directory as a leftover", func(path string) error { return os.MkdirAll(path+".new/x", 0o700) }, []string{"conf.new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "sub")
			path := filepath.Join(dir, "conf")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.before(path); err != nil {
				t.Fatal(err)
			}
			if err := WriteFile(path, []byte("secret"), 0o600); err == nil || !strings.Contains(err.Error(), "publish conf: ") {
				t.Errorf("got %v", err)
			}
			if tt.left != nil {
				expectOnly(t, dir, tt.left...)
			}
		})
	}
}

func TestWriteFileIfChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	for i, tt := range []struct {
		data  string
		mode  fs.FileMode
		wrote bool
	}{
		{"a", 0o644, true},
		{"a", 0o644, false},
		{"b", 0o644, true},
		{"", 0o644, true},
		{"", 0o644, false},
		{"", 0o600, true},
		{"", 0o600, false},
	} {
		wrote, err := WriteFileIfChanged(path, []byte(tt.data), tt.mode)
		if wrote != tt.wrote || err != nil {
			t.Errorf("%d: wrote is %v, %v", i, wrote, err)
		}
		expectFile(t, path, tt.data, tt.mode)
	}
	expectOnly(t, dir, "conf")
	if wrote, err := WriteFileIfChanged(filepath.Join(dir, "none", "conf"), nil, 0o600); err == nil {
		t.Errorf("without a directory: %v", wrote)
	}
}

func TestStageAndCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, cert := filepath.Join(dir, "server.key"), filepath.Join(dir, "server.crt")
	if err := WriteFile(key, []byte("old key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Stage(key, []byte("new key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Stage(cert, []byte("certificate"), 0o644); err != nil {
		t.Fatal(err)
	}
	expectFile(t, key, "old key", 0o600)
	expectFile(t, key+".new", "new key", 0o600)
	expectOnly(t, dir, "server.crt.new", "server.key", "server.key.new")
	if err := Commit(key, cert); err != nil {
		t.Fatal(err)
	}
	expectFile(t, key, "new key", 0o600)
	expectFile(t, cert, "certificate", 0o644)
	expectOnly(t, dir, "server.crt", "server.key")
	if err := Commit(key); err == nil {
		t.Error("committed what was not staged")
	}
}

// TestStageOnAFullDisk: a failed write leaves nothing behind. The file size limit stands in for a full disk.
func TestStageOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(path, make([]byte, 8192), 0o600)
	if restoreErr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); restoreErr != nil {
		t.Fatal(restoreErr)
	}
	if err == nil {
		t.Fatal("the write did not fail")
	}
	expectFile(t, path, "old", 0o600)
	expectOnly(t, dir, "conf")
}

func TestSyncTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x", "a/x", "a/b/x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	// Neither a dangling link nor a pipe, which would block, is opened.
	if err := os.Symlink("/no/such", filepath.Join(dir, "a", "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "a", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := SyncTree(dir); err != nil {
		t.Error(err)
	}
	if err := SyncTree(filepath.Join(dir, "none")); err == nil {
		t.Error("a tree that is not there was synced")
	}
	if err := SyncDir(OS{}, filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there was synced")
	}
}

// TestKilledWhilePublishing kills a publishing process at random times: the file is complete each time, and the next
// publication succeeds.
func TestKilledWhilePublishing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "conf")
	leftovers := 0
	for range 15 {
		cmd := helper(t, "forever", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // time of the kill, not a wait
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		data, err := os.ReadFile(path)
		if err != nil || len(data) != versionSize || !bytes.Equal(data, version(data[0])) {
			t.Fatalf("the file has %d bytes, %v", len(data), err)
		}
		if _, err := os.Lstat(path + ".new"); err == nil {
			leftovers++
		}
	}
	t.Logf("%d of 15 left a leftover", leftovers)
	if err := WriteFile(path, []byte("after"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectFile(t, path, "after", 0o600)
	expectOnly(t, dir, "conf")
}

const versionSize = 1 << 20

func version(n byte) []byte { return bytes.Repeat([]byte{n}, versionSize) }

// publishForever is the process to be killed.
func publishForever(path string) {
	for n := byte(0); ; n++ {
		if err := WriteFile(path, version(n), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = os.Stdout.Write([]byte{n})
	}
}

// publishTraced is the traced process. The calls of getppid before and after mark the part to trace.
func publishTraced(path string) {
	syscall.Getppid()
	err := WriteFile(path, []byte("data"), 0o600)
	syscall.Getppid()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func helper(t *testing.T, what string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+what)
	cmd.Stderr = os.Stderr
	return cmd
}
