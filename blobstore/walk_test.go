package blobstore_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast/blobstore"
)

func removeIsIdempotent(t *testing.T, s *session) {
	a, b, c := s.put("a"), s.put("b"), s.put("c")
	if err := s.Remove(a, a); err != nil {
		t.Error(err)
	}
	if err := s.Remove(a, b); err != nil {
		t.Error(err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	s.mustBe(map[blobstore.Ref]int64{c: 1})
}

func walkIsWhatIsThere(t *testing.T, s *session) {
	want := map[blobstore.Ref]int64{}
	for i := range 30 {
		ref := s.put(strings.Repeat("x", i))
		if i%3 == 0 {
			if err := s.Remove(ref); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want[ref] = int64(i)
	}
	s.mustBe(want)
	err := s.Walk(func(ref blobstore.Ref, _ int64, _ time.Time) error { return s.Remove(ref) })
	if err != nil {
		t.Errorf("removing while walking: %v", err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func walkStops(t *testing.T, s *session) {
	s.put("a")
	s.put("b")
	enough, calls := errors.New("enough"), 0
	err := s.Walk(func(blobstore.Ref, int64, time.Time) error { calls++; return enough })
	if err != enough || calls != 1 {
		t.Errorf("Walk called %d times and answered %v", calls, err)
	}
}

func reopening(t *testing.T, s *session) {
	kept, removed := s.put("kept"), s.put("removed")
	if err := s.Remove(removed); err != nil {
		t.Fatal(err)
	}
	io.WriteString(s.create(), "unfinished")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Store = s.reopen(0)
	if got := s.get(kept); got != "kept" {
		t.Errorf("after reopening: %q", got)
	}
	more := s.put("more")
	s.mustBe(map[blobstore.Ref]int64{kept: 4, more: 4})
}

func closedStore(t *testing.T, s *session) {
	w, r := s.create(), s.open(s.put("readable"))
	defer r.Close()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context()); !errors.Is(err, blobstore.ErrClosed) {
		t.Errorf("Create: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, blobstore.ErrClosed) {
		t.Errorf("Commit: %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort: %v", err)
	}
	if content, err := io.ReadAll(r); err != nil || string(content) != "readable" {
		t.Errorf("open reader: %q, %v", content, err)
	}
}
