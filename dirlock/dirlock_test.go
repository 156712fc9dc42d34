package dirlock

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestTake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(dir); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), dir) {
		t.Errorf("taking it twice: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if lock, err = Take(dir); err != nil {
		t.Fatalf("taking it again: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if _, err := Take(dir + "/missing"); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("taking what is not there: %v", err)
	}
}

// A child that has the file open, as one that is being forked does, keeps
// nobody from the directory.
func TestReleaseBesideAChild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), "cat")
	child.ExtraFiles = append(child.ExtraFiles, lock.dir)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if lock, err := Take(dir); err != nil {
		t.Error(err)
	} else if err := lock.Release(); err != nil {
		t.Error(err)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
