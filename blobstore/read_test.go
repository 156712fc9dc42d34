package blobstore_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"holdfast/blobstore"
)

func deleteWhileRead(t *testing.T, s *session) {
	content := strings.Repeat("old bytes ", 100_000)
	ref := s.put(content)
	r := s.open(ref)
	defer r.Close()
	head := make([]byte, 100)
	if _, err := io.ReadFull(r, head); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ref); err != nil {
		t.Fatal(err)
	}
	s.put(strings.Repeat("new bytes ", 100_000))
	rest, err := io.ReadAll(r)
	if err != nil || string(head)+string(rest) != content {
		t.Errorf("the open reader read other bytes, error %v", err)
	}
	if _, err := s.Open(t.Context(), ref); !errors.Is(err, blobstore.ErrNotFound) {
		t.Errorf("Open after Remove: %v", err)
	}
}

func readersShareOneBlob(t *testing.T, s *session) {
	ref := s.put(strings.Repeat("0123456789", 1000))
	a, b := s.open(ref), s.open(ref)
	defer a.Close()
	defer b.Close()
	if _, err := a.Seek(-5, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	tail, _ := io.ReadAll(a)
	head := make([]byte, 3)
	io.ReadFull(b, head)
	middle := make([]byte, 4)
	if _, err := b.ReadAt(middle, 5003); err != nil {
		t.Fatal(err)
	}
	if got := string(tail) + " " + string(head) + " " + string(middle); got != "56789 012 3456" {
		t.Errorf("read %q", got)
	}
	if n, err := b.ReadAt(middle, 9998); n != 2 || err != io.EOF {
		t.Errorf("ReadAt over the end: %d, %v", n, err)
	}
}

func hostileReferences(t *testing.T, s *session) {
	kept := s.put("kept")
	for _, ref := range []blobstore.Ref{
		"", ".", "..", "/", "../../etc/passwd", "/etc/passwd", "a\x00b", "format", "incoming/x",
		kept + "/..", kept + "\n", "../" + kept, blobstore.Ref(strings.ToUpper(string(kept))) + "x",
		blobstore.Ref(bytes.Repeat([]byte("a"), 100_000)),
	} {
		if _, err := s.Open(t.Context(), ref); !errors.Is(err, blobstore.ErrBadRef) {
			t.Errorf("Open(%.40q): %v", ref, err)
		}
		if err := s.Remove(ref); !errors.Is(err, blobstore.ErrBadRef) {
			t.Errorf("Remove(%.40q): %v", ref, err)
		}
	}
	s.mustBe(map[blobstore.Ref]int64{kept: 4})
}
