package offsite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/engine"
)

// TestCloseWhileTheStoreHangs: a disk of the copy that does not answer holds up neither a start nor an end.
func TestCloseWhileTheStoreHangs(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	m.close(t.Context())
	marker := filepath.Join(strings.TrimPrefix(m.at.URL, "file://"), "holdfast")
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(marker, 0o600); err != nil { // to open it is to wait in the kernel
		t.Fatal(err)
	}
	e, err := engine.Open(m.cfg)
	if err == nil {
		err = e.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // the service has begun to wait
	began := time.Now()
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the end took %s", took)
	}
	if f, err := os.OpenFile(marker, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // ends the waiting
		f.Close()
	}
}
