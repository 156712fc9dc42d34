package core

import (
	"errors"
	"testing"
)

// TestSpace: operations that begin together do not count on the same space, what one has written it does not need any more, and
// what it needs itself does not refuse it.
func TestSpace(t *testing.T) {
	t.Parallel()
	free, refused := int64(1000), errors.New("refused")
	s := &Space{measure: func() (int64, error) { return free, nil }}
	var told int64
	reserve := func(id string, bytes int64) error {
		return s.Reserve(id, bytes, 100, func(free int64) error {
			told = free
			return refused
		})
	}
	must := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	must(reserve("a", 600), nil)
	must(reserve("b", 400), refused)
	if told != 400 {
		t.Errorf("told that %d are free", told)
	}
	must(reserve("b", 300), nil)
	must(reserve("", 1), refused)
	must(reserve("a", 600), nil) // again
	s.Written("a", 1, 2)
	free -= 300
	must(reserve("", 1), refused)
	s.Release("b")
	must(reserve("", 300), nil)
	must(reserve("", 301), refused)
	s.Written("a", 5, 2)
	free -= 300
	must(reserve("", 300), nil)
	others := int64(200)
	s.Count(func() int64 { return others })
	must(reserve("", 200), refused)
	if told != 200 {
		t.Errorf("told that %d are free", told)
	}
	s.MeasureWith(func() (int64, error) { return 0, errors.New("no disk") })
	must(reserve("c", 1<<40), nil)
}
