package blobstore_test

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"sync"
	"testing"

	"holdfast/blobstore"
)

func roundTrip(t *testing.T, s *session) {
	for _, content := range []string{"", "a", strings.Repeat("0123456789", 500_000)} {
		w := s.create()
		for part := []byte(content); len(part) > 0; {
			n := min(len(part), 65_537)
			if _, err := w.Write(part[:n]); err != nil {
				t.Fatal(err)
			}
			part = part[n:]
		}
		want := crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli))
		if w.CRC32C() != want {
			t.Errorf("CRC32C is %08x, want %08x", w.CRC32C(), want)
		}
		ref, _, err := w.Commit()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.get(ref); got != content {
			t.Errorf("%d bytes came back as %d others", len(content), len(got))
		}
	}
}

func sameContentTwice(t *testing.T, s *session) {
	a, b := s.put("same"), s.put("same")
	if a == b {
		t.Fatal("two blobs share a reference: removing one would remove both")
	}
	if err := s.Remove(a); err != nil {
		t.Fatal(err)
	}
	if got := s.get(b); got != "same" {
		t.Errorf("the other blob is %q", got)
	}
}

func nothingBeforeCommit(t *testing.T, s *session) {
	w := s.create()
	defer w.Abort()
	if _, err := io.WriteString(w, "unfinished"); err != nil {
		t.Fatal(err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func abortLeavesNothing(t *testing.T, s *session) {
	w := s.create()
	io.WriteString(w, "unwanted")
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func endingTwice(t *testing.T, s *session) {
	w := s.create()
	ref, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v", err)
	}
	if _, _, err := w.Commit(); err == nil {
		t.Error("a second Commit succeeded")
	}
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("Write after Commit succeeded")
	}
	s.mustBe(map[blobstore.Ref]int64{ref: 0})

	w = s.create()
	if err := errors.Join(w.Abort(), w.Abort()); err != nil {
		t.Errorf("Abort twice: %v", err)
	}
	if _, _, err := w.Commit(); err == nil {
		t.Error("Commit after Abort succeeded")
	}
	s.mustBe(map[blobstore.Ref]int64{ref: 0})
}

// truncatedWrite is an upload whose client disconnected.
func truncatedWrite(t *testing.T, s *session) {
	gone := errors.New("client went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := s.Create(ctx)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "half of")
	cancel(gone)
	if _, err := io.WriteString(w, " it"); !errors.Is(err, gone) {
		t.Errorf("Write after the end of its context: %v", err)
	}
	if _, _, err := w.Commit(); !errors.Is(err, gone) {
		t.Errorf("Commit after the end of its context: %v", err)
	}
	if _, err := s.Create(ctx); !errors.Is(err, gone) {
		t.Errorf("Create after the end of its context: %v", err)
	}
	s.mustBe(map[blobstore.Ref]int64{})
}

func concurrentCreates(t *testing.T, s *session) {
	const writers, each = 16, 12
	var (
		mu   sync.Mutex
		want = map[blobstore.Ref]int64{}
		wg   sync.WaitGroup
	)
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				w, err := s.Create(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				w.Write(bytes.Repeat([]byte{byte(i)}, j*1000))
				if j%4 == 3 {
					w.Abort()
					continue
				}
				ref, size, err := w.Commit()
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				want[ref] = size
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(want) != writers*each*3/4 {
		t.Errorf("%d different references", len(want))
	}
	s.mustBe(want)
}
