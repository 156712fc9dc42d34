package blobstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/blobstore"
)

// sizes are on both sides of the limits that a backend may have for small blobs.
var sizes = []int{0, 1, 4095, 4096, 65_536, 65_537, 262_144, 262_145, 1_500_000}

func content(size int) string {
	return strings.Repeat("0123456789abcdef", size/16+1)[:size]
}

func publishedRoundTrip(t *testing.T, s *session) {
	refs := map[int]blobstore.Ref{}
	for _, size := range sizes {
		refs[size] = s.publish(fmt.Sprint(size), content(size))
	}
	s.take()
	for range 2 {
		for size, ref := range refs {
			if got := s.get(ref); got != content(size) {
				t.Errorf("%d bytes came back as %d others", size, len(got))
			}
			r := s.open(ref)
			if err := r.Verify(0, int64(size)); err != nil {
				t.Error(err)
			}
			r.Close()
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Store = s.reopen(0)
	}
}

// hostileNotes uses as notes what a client might choose as a key.
func hostileNotes(t *testing.T, s *session) {
	notes := []string{
		"", "a", "/", "..", "../../etc/passwd", "a\x00b", "\xff\xfe",
		"holdfast journal 1 00000001", strings.Repeat("k", 100_000), "\n", "é",
	}
	for _, note := range notes {
		s.publish(note, "x")
		if err := s.Log(t.Context(), []byte(note), nil); err != nil {
			t.Fatal(err)
		}
	}
	s.take()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Store = s.reopen(0)
	replayed := s.take()
	if len(replayed) != 2*len(notes) {
		t.Fatalf("%d entries came back, want %d", len(replayed), 2*len(notes))
	}
	for i, e := range replayed {
		if string(e.Note) != notes[i/2] {
			t.Errorf("note %.40q came back as %.40q", notes[i/2], e.Note)
		}
		if (i%2 == 0) != (e.Ref != "") {
			t.Errorf("entry %d has the blob %q", i, e.Ref)
		}
	}
}

// deliveredInOrder checks that every entry is delivered before its call returns, exactly once, in the order of
// positions.
func deliveredInOrder(t *testing.T, s *session) {
	const writers, each = 16, 25
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for k := range each {
				note := fmt.Sprintf("%d %d", i, k)
				if err := s.Log(t.Context(), []byte(note), note); err != nil {
					t.Error(err)
				}
				s.mu.Lock()
				last := ""
				for _, e := range s.delivered {
					if strings.HasPrefix(string(e.Note), fmt.Sprintf("%d ", i)) {
						last = string(e.Note)
					}
				}
				s.mu.Unlock()
				if last != note {
					t.Errorf("%q is acknowledged, and %q was delivered last", note, last)
				}
			}
		})
	}
	wg.Wait()
	entries := s.take()
	if len(entries) != writers*each {
		t.Errorf("%d entries, want %d", len(entries), writers*each)
	}
	for i, e := range entries {
		if i > 0 && e.Position <= entries[i-1].Position {
			t.Errorf("position %x follows %x", e.Position, entries[i-1].Position)
		}
		if e.Value != string(e.Note) {
			t.Errorf("the value of %q is %v", e.Note, e.Value)
		}
	}
}

func replayedFromAPlace(t *testing.T, s *session) {
	for i := range 20 {
		s.publish(fmt.Sprint(i), content(i))
	}
	all := s.take()
	for _, from := range []int{0, 7, 19} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.Store = s.reopen(all[from].Position)
		rest := s.take()
		if len(rest) != len(all)-from-1 {
			t.Fatalf("%d entries follow entry %d", len(rest), from)
		}
		for i, e := range rest {
			want := all[from+1+i]
			if e.Position != want.Position || e.Ref != want.Ref || e.Size != want.Size || !bytes.Equal(e.Note, want.Note) {
				t.Errorf("replayed %+v, want %+v", e, want)
			}
		}
	}
	s.publish("after", "x")
	if e := s.take(); len(e) != 1 || e[0].Position <= all[19].Position {
		t.Errorf("what follows a restart is at %+v", e)
	}
}

// overwriteWhileRead replaces content as callers do, with a new blob.
func overwriteWhileRead(t *testing.T, s *session) {
	for _, size := range []int{1000, 300_000} {
		old := strings.Repeat("o", size)
		ref := s.publish("key", old)
		r := s.open(ref)
		head := make([]byte, 10)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		next := s.publish("key", strings.Repeat("n", size))
		if next == ref {
			t.Fatal("a blob was overwritten in place")
		}
		if err := s.Remove(ref); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(r)
		if err != nil || string(head)+string(rest) != old {
			t.Errorf("the reader of the old read something else, error %v", err)
		}
		r.Close()
		if got := s.get(next); got != strings.Repeat("n", size) {
			t.Error("the new is something else")
		}
	}
}

// wrongChecksum aborts a blob before Publish, like an upload whose checksum is not the announced one.
func wrongChecksum(t *testing.T, s *session) {
	for _, size := range []int{100, 300_000} {
		w := s.create()
		if _, err := io.WriteString(w, content(size)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Secure(); err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.take(); len(e) != 0 {
		t.Errorf("delivered: %v", e)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

// slowUploads keeps a hundred writers open while others come and go.
func slowUploads(t *testing.T, s *session) {
	var slow []*blobstore.Writer
	for i := range 100 {
		w := s.create()
		if _, err := io.WriteString(w, content(i*1000)); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, w)
	}
	quick := s.publish("quick", "quick")
	if got := s.get(quick); got != "quick" {
		t.Errorf("beside slow uploads: %q", got)
	}
	for i, w := range slow {
		if _, err := io.WriteString(w, "end"); err != nil {
			t.Fatal(err)
		}
		ref, err := w.Publish(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(ref); got != content(i*1000)+"end" {
			t.Errorf("slow upload %d came back as %d other bytes", i, len(got))
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("client went away")
	cancel(gone)
	if _, err := w.Publish(nil, nil); !errors.Is(err, gone) {
		t.Errorf("Publish after the end of its context: %v", err)
	}
}

func walkWhileWritten(t *testing.T, s *session) {
	var before []blobstore.Ref
	for range 20 {
		before = append(before, s.publish("before", content(100_000)))
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.publish("during", content(70_000))
			}
		}
	})
	for range 5 {
		seen := map[blobstore.Ref]bool{}
		if err := s.Walk(func(ref blobstore.Ref, _ int64, _ time.Time) error { seen[ref] = true; return nil }); err != nil {
			t.Error(err)
		}
		for _, ref := range before {
			if !seen[ref] {
				t.Errorf("%s is not seen while others are written", ref)
			}
		}
	}
	close(stop)
	wg.Wait()
}
