package durable

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestLockDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockDir(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("taking it twice: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if lock, err = LockDir(dir); err != nil {
		t.Fatalf("taking it again: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	if _, err := LockDir(dir + "/missing"); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("taking what is not there: %v", err)
	}
}

// TestReleaseDirLockWhileChildHasIt: a child process that has the directory open, like one being forked, does not
// keep it locked.
func TestReleaseDirLockWhileChildHasIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := LockDir(dir)
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
	if lock, err := LockDir(dir); err != nil {
		t.Error(err)
	} else if err := lock.Release(); err != nil {
		t.Error(err)
	}
	in.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
