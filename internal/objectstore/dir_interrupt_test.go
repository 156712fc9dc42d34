package objectstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/durable"
)

// hungFS is a file system whose server does not answer before the test ends.
type hungFS struct {
	durable.OS
	answers chan struct{}
}

func (f hungFS) Create(path string) (durable.File, error) {
	<-f.answers
	return f.OS.Create(path)
}

func (f hungFS) Remove(path string) error {
	<-f.answers
	return f.OS.Remove(path)
}

// TestHungDirectory: calls end with their context while the disk does not answer, and nobody reads a body after it.
func TestHungDirectory(t *testing.T) {
	t.Parallel()
	fsys := hungFS{answers: make(chan struct{})}
	dir, s := openDir(t, Options{FS: fsys})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	body := &endingBody{body: Bytes("x")}
	for what, call := range map[string]func(context.Context) error{
		"create": func(ctx context.Context) error { return s.Create(ctx, "e/1", body, CreateOptions{}) },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "e/1") },
		"read": func(ctx context.Context) error {
			_, err := s.Get(ctx, "pipe", Range{})
			return err
		},
		"probe": func(ctx context.Context) error {
			_, err := s.Probe(ctx)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
	body.end()
	close(fsys.answers)
	release, err := os.OpenFile(filepath.Join(dir, "pipe"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	release.Close()
	if _, err := body.Open(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a body is read after its end: %v", err)
	}
	// The directory answers again.
	if err := s.Create(t.Context(), "e/2", Bytes("y"), CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestInterruptedReader: large objects and ranges are read whole, and not after their context.
func TestInterruptedReader(t *testing.T) {
	t.Parallel()
	_, s := openDir(t, Options{})
	content := strings.Repeat("0123456789", 100_000)
	if err := s.Create(t.Context(), "large", Bytes(content), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o, err := s.Get(ctx, "large", Range{Offset: 5, Length: 700_000})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(o)
	if err := errors.Join(err, o.Close()); err != nil || string(got) != content[5:700_005] {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if o, err = s.Get(ctx, "large", Range{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if n, err := io.Copy(io.Discard, o); !errors.Is(err, context.Canceled) {
		t.Errorf("%d bytes after the end, %v", n, err)
	}
}
