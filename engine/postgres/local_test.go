package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/postgres/binaries"
)

func TestFreePort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy := l.Addr().(*net.TCPAddr).Port
	for _, listen := range [][]string{{"127.0.0.1"}, {"127.0.0.2", "127.0.0.1"}, {"*"}} {
		if port, err := FreePort(busy, busy, listen, nil); err == nil {
			t.Errorf("listening on %v: %d is taken", listen, port)
		}
	}
	if port, err := FreePort(busy, busy, []string{"127.0.0.2"}, nil); err != nil || port != busy {
		t.Errorf("on another address: %d, %v", port, err)
	}
	port, err := FreePort(busy, busy+50, []string{"127.0.0.1"}, func(p int) bool { return p == busy+1 })
	if err != nil || port < busy+2 {
		t.Errorf("%d, %v", port, err)
	}
	if _, err := FreePort(busy, busy, []string{"127.0.0.1"}, func(int) bool { return true }); err == nil || !strings.Contains(err.Error(), "other databases") {
		t.Errorf("all taken: %v", err)
	}
}

func TestSocketDir(t *testing.T) {
	t.Parallel()
	short := t.TempDir()
	dir, err := SocketDir(short)
	if err != nil || dir != filepath.Join(short, "run") {
		t.Errorf("%s, %v", dir, err)
	}
	long := filepath.Join(short, strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	far, err := SocketDir(long)
	if err != nil || strings.HasPrefix(far, long) || len(SocketPath(far, 65535)) > 107 {
		t.Errorf("%s, %v", far, err)
	}
	if again, err := SocketDir(long); err != nil || again != far {
		t.Errorf("again %s, %v", again, err)
	}
	if other, _ := SocketDir(long + "x"); other == far {
		t.Error("two data directories share one")
	}
	if err := os.Chmod(far, 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketDir(long); err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("open to others: %v", err)
	}
	if err := os.Remove(far); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(short, far); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketDir(long); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a link: %v", err)
	}
	if err := privateDir("/usr"); err == nil || os.Geteuid() != 0 && !strings.Contains(err.Error(), "another user") {
		t.Errorf("another user's: %v", err)
	}
}

func TestReadPIDFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readPIDFile(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for text, want := range map[string]pidFile{
		"4711\n/data\n1700000000\n5433\n/run/x\n127.0.0.1\n  5432001    32768\nready   \n": {4711, "/data", 5433, "/run/x", "ready"},
		"4711\n/data\n1700000000\n5433\n\n\n":                                              {pid: 4711, dir: "/data", port: 5433},
		"4711":                                                                             {pid: 4711}, "": {}, "-7\n": {}, "garbage\x00": {},
	} {
		if err := os.WriteFile(pidFilePath(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readPIDFile(dir); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestRotateLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, logDir), 0o700); err != nil {
		t.Fatal(err)
	}
	signals := 0
	signal := func() error { signals++; return nil }
	for n := range 8 {
		if err := os.WriteFile(ringFile(dir, 0), fmt.Appendf(nil, "log %d", n), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := rotateLog(dir, 100, signal); err != nil || signals != n {
			t.Fatalf("rotated a small log: %d, %v", signals, err)
		}
		if err := rotateLog(dir, 5, signal); err != nil || signals != n+1 {
			t.Fatalf("rotated %d times, %v", signals, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, logDir, "*"))
	newest, _ := os.ReadFile(ringFile(dir, 1))
	oldest, _ := os.ReadFile(ringFile(dir, logKept))
	if len(files) != logKept || string(newest) != "log 7" || string(oldest) != "log 4" {
		t.Errorf("%q, newest %q, oldest %q", files, newest, oldest)
	}
	if _, err := os.Stat(filepath.Join(dir, "logrotate")); err != nil {
		t.Error(err)
	}
}

// Lines that tenants write to the log are not taken for the postmaster's.
func TestLogLinesOfThePostmaster(t *testing.T) {
	t.Parallel()
	const lines = "2026-01-01 00:00:00.000 UTC [7] LOG:  could not bind IPv4 address \"127.0.0.1\": Address already in use\n"
	if !portTaken(lines, 7) || portTaken(lines, 8) || portTaken("\t"+lines, 7) ||
		portTaken("2026-01-01 00:00:00.000 UTC [8] LOG:  x [7] LOG:  could not bind: already in use\n", 7) {
		t.Error("portTaken")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, logDir), 0o700); err != nil {
		t.Fatal(err)
	}
	const at = "2026-01-01 00:00:00.000 UTC "
	text := at + "[7] one\n" + at + "[8] tenant\n\tc d e [7] forged\n" + at + "[8] LOG:  x [7] forged\n" + at + "[7] two\n" + at + "[7] three\n"
	if err := os.WriteFile(ringFile(dir, 0), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (logMark{dir, int64(len(at))}).lastWords(7, 9); strings.Contains(got, "one") {
		t.Errorf("before the mark: %q", got)
	}
	if got := (logMark{dir: dir}).lastWords(7, 9); got != at+"[7] one\n"+at+"[7] two\n"+at+"[7] three" {
		t.Errorf("words %q", got)
	}
	if got := (logMark{dir: dir}).lastWords(7, 2); got != at+"[7] two\n"+at+"[7] three" {
		t.Errorf("last words %q", got)
	}
	if got := (logMark{dir: dir}).lastWords(9, 2); got != "" {
		t.Errorf("another's %q", got)
	}
	forged := at + "[7] forged"
	long := at + "[8] LOG:  " + forged + strings.Repeat("x", 16<<10-len(forged)-1) + "\n"
	if err := os.WriteFile(ringFile(dir, 0), []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := (logMark{dir: dir}).lastWords(7, 2); got != "" {
		t.Errorf("within a line: %.40q", got)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoff
	var got []time.Duration
	for range 12 {
		got = append(got, b.delay())
	}
	if got[0] != 0 || got[1] != 100*time.Millisecond || got[2] != 200*time.Millisecond || got[11] != 30*time.Second {
		t.Errorf("%v", got)
	}
	for range 100 {
		if d := b.delay(); d != 30*time.Second {
			t.Fatalf("%v after many", d)
		}
	}
}

func TestInitError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\necho out of luck >&2\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "initdb"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Init(t.Context(), binaries.Set{Dir: dir}, filepath.Join(dir, "data"))
	if err == nil || !strings.Contains(err.Error(), "out of luck") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Init(ctx, binaries.Set{Dir: dir}, filepath.Join(dir, "data")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
