package wal

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDirWatch: each write is reported once for each time the watch was armed, and to no other watch.
func TestDirWatch(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(here, "segment"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a, b := newDirWatch(here), newDirWatch(there)
	defer a.close()
	defer b.close()
	expectNewly := func(what string, a *dirWatch, want bool) {
		t.Helper()
		if newly, err := a.arm(); err != nil || newly != want {
			t.Fatalf("%s: newly armed: %v, %v", what, newly, err)
		}
	}
	expectNewly("there", b, true)
	for range 100 {
		expectNewly("here", a, true)
		expectNewly("here, again", a, false)
		for range 3 {
			if _, err := file.WriteString("x"); err != nil {
				t.Fatal(err)
			}
		}
		<-a.written
	}
	select {
	case <-b.written:
		t.Error("a write in another directory was reported")
	default:
	}
	expectNewly("there, where nothing was written", b, false)
	expectNewly("before it is closed", a, true)
	a.close()
	if _, err := file.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	expectNewly("after it was closed", a, true)
	if _, err := newDirWatch(filepath.Join(here, "nothing")).arm(); err == nil {
		t.Error("armed for a directory that does not exist")
	}
}
