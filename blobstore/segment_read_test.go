package blobstore

import (
	"os"
	"testing"
	"time"
)

// A read that the disk does not answer delays no other read.
func TestReadBesideAReadThatHangs(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{SegmentSize: 1})
	var refs []Ref
	for range 3 {
		ref, err := publish(t, s, "x")
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	open := func(ref Ref) {
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Error(err)
			return
		}
		r.Close()
	}
	open(refs[0])
	hung, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	at, _ := refs[0].position()
	go func() {
		_ = s.journal.reads.read(at.Segment(), s.journal.path(at.Segment()), func(*os.File) error {
			close(hung)
			<-release
			return nil
		})
	}()
	<-hung
	within := func(what string, do func()) {
		done := make(chan struct{})
		go func() { do(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits for a read of another segment", what)
		}
	}
	within("reading a segment that was not open", func() { open(refs[1]) })
	within("reading a segment", func() { open(refs[2]) })
	within("reading the same segment", func() { open(refs[0]) })
	within("Close", func() { s.Close() })
}

// A reader that was faster than the removal of its segment does not keep it open.
func TestDroppedSegmentIsClosed(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{SegmentSize: 1})
	ref, err := publish(t, s, "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t, s, "two"); err != nil {
		t.Fatal(err)
	}
	at, _ := ref.position()
	if err := s.journal.reads.read(at.Segment(), s.journal.path(at.Segment()), func(*os.File) error {
		return s.DropSegment(at.Segment())
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.journal.reads.open); n > 0 {
		t.Errorf("%d dropped segments stay open, and take their space", n)
	}
	if r, err := s.Open(t.Context(), ref); err == nil {
		r.Close()
		t.Error("a blob of a dropped segment can be opened")
	}
}
