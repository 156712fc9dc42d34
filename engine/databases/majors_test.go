package databases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// A slow search, such as a download that hangs, does not delay databases whose
// binaries are installed.
func TestSlowSearchForAMajor(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	var searching sync.WaitGroup
	searching.Add(1)
	hang := make(chan struct{})
	m := newMajors(binaries.Search{NoFetch: true, Installed: func() []string {
		searching.Done()
		<-hang
		return nil
	}}, bin)
	missing := make(chan error, 1)
	go func() {
		_, err := m.Find(context.WithoutCancel(t.Context()), bin.Major+90)
		missing <- err
	}()
	searching.Wait()
	found := make(chan error, 1)
	go func() {
		_, err := m.Find(context.WithoutCancel(t.Context()), bin.Major)
		found <- err
	}()
	select {
	case err := <-found:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the search for one major keeps the other waiting")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	go func() {
		_, err := m.Find(ctx, bin.Major+91)
		found <- err
	}()
	select {
	case err := <-found:
		if model.CodeOf(err) != model.CodeConflict {
			t.Errorf("while another search runs: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("a search waits for another beyond its deadline")
	}
	close(hang)
	if err := <-missing; model.CodeOf(err) != model.CodeConflict {
		t.Errorf("a major that is nowhere: %v", err)
	}
}

// After a download fails, the next databases that need the same version do not
// try it again; this machine is searched each time.
func TestMajorThatCannotBeFetched(t *testing.T) {
	t.Parallel()
	bin := postgrestest.Binaries(t)
	looks := 0
	m := newMajors(binaries.Search{Installed: func() []string { looks++; return nil }}, binaries.Set{Major: bin.Major})
	for n, want := range []string{"no cache directory", "not tried", "not tried"} {
		_, err := m.Find(t.Context(), 33-bin.Major) // a plausible version other than bin's
		if err == nil || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), want) || looks != n+1 {
			t.Errorf("search %d looked %d times: %v", n+1, looks, errors.Unwrap(err))
		}
	}
}
