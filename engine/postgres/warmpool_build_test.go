package postgres

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A template that cannot be read for want of file descriptors is not taken for damaged. (Not parallel: no other test
// may run with so few.)
func TestTemplateWithoutFileDescriptors(t *testing.T) {
	t.Parallel()
	pool := &WarmPool{opts: WarmPoolOptions{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, templating: make(chan struct{}, 1)}
	if err := os.Mkdir(pool.template(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pool.template(), "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeManifest(pool.template()); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("the copy failed")
	err := pool.checkTemplate(t.Context(), cause)
	if restored := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); restored != nil {
		t.Fatal(restored)
	}
	if !errors.Is(err, cause) || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%v, want the reason why the copy failed, and that of the check", err)
	}
	if files, err := readManifest(pool.template()); err != nil || len(files) != 1 {
		t.Errorf("the template has %v, %v", files, err)
	}
}
