package wal

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAlarm: a write is told of once for each time the alarm was set, and to
// nobody else.
func TestAlarm(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	file, err := os.Create(filepath.Join(here, "segment"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a, b := newAlarm(here), newAlarm(there)
	defer a.close()
	defer b.close()
	expectFresh := func(what string, a *alarm, want bool) {
		t.Helper()
		if fresh, err := a.set(); err != nil || fresh != want {
			t.Fatalf("%s: set anew %v, %v", what, fresh, err)
		}
	}
	expectFresh("there", b, true)
	for range 100 {
		expectFresh("here", a, true)
		expectFresh("here, again", a, false)
		for range 3 {
			if _, err := file.WriteString("x"); err != nil {
				t.Fatal(err)
			}
		}
		<-a.written
	}
	select {
	case <-b.written:
		t.Error("told of a write elsewhere")
	default:
	}
	expectFresh("there, where nothing was written", b, false)
	expectFresh("before it is closed", a, true)
	a.close()
	if _, err := file.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	expectFresh("after it was closed", a, true)
	if _, err := newAlarm(filepath.Join(here, "nothing")).set(); err == nil {
		t.Error("set where nothing is")
	}
}
