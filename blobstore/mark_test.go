package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestForgedRecord publishes a blob that looks like a record, for the case that the record before it is damaged: it
// would be replayed only with the segment's mark, which is secret.
func TestForgedRecord(t *testing.T) {
	for _, known := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "store")
		s := openStore(t, dir, Options{})
		victim, err := publish(t, s, "the blob before")
		if err != nil {
			t.Fatal(err)
		}
		at, _ := victim.position()
		segment := s.journal.current
		m := newMark()
		if known {
			m = segment.mark
		}
		name := "of whom the content is"
		forged := record{
			note: []byte("forged"), crc: crc32.Checksum(nil, castagnoli), batch: 1 << 20, first: true,
			position: PositionOf(at.Segment(), segment.offset()+recordHeader+int64(len(name))),
		}
		w, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(forged.bytes(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Publish([]byte(name), nil); err != nil {
			t.Fatal(err)
		}
		s.Close()
		path := filepath.Join(dir, "journal", directoryName(at.Segment()))
		flipByte(t, path, at.offset())                                    // the record before it
		flipByte(t, path, segment.offset()-int64(len(forged.bytes(m)))-1) // and the end of its own note
		var notes []string
		openStore(t, dir, Options{Deliver: collect(&notes)})
		if slices.Contains(notes, "forged") != known {
			t.Errorf("replayed %q, with the mark known: %t", notes, known)
		}
	}
}

// TestFirstSectorLost loses the first sector of a segment: data after it can still be read by a caller that knows
// its position.
func TestFirstSectorLost(t *testing.T) {
	dir, refs := written(t, 30, Options{})
	last, _ := refs[29].position()
	path := filepath.Join(dir, "journal", directoryName(last.Segment()))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0x5a}, 512), 0); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, dir, Options{})
	mustRead(t, s, refs[29], "blob 29", "behind a lost sector")
	if _, err := s.Open(t.Context(), refs[0]); !errors.Is(err, ErrDamaged) {
		t.Errorf("in it: %v", err)
	}
}

// TestFirstLineDamaged flips each byte of a segment's first line: everything can still be read, and the damage is
// reported.
func TestFirstLineDamaged(t *testing.T) {
	dir, refs := written(t, 3, Options{})
	at, _ := refs[0].position()
	path := filepath.Join(dir, "journal", directoryName(at.Segment()))
	for offset := range int64(segmentHeader) {
		flipByte(t, path, offset)
		var notes []string
		s := openStore(t, dir, Options{Deliver: collect(&notes)})
		for i, ref := range refs {
			mustRead(t, s, ref, fmt.Sprint("blob ", i), "behind a damaged line")
		}
		if got := strings.Join(notes, ","); got != "blob 0,blob 1,blob 2" {
			t.Errorf("byte %d: replayed %s", offset, got)
		}
		if err := s.ReadSegment(at.Segment(), func(Entry, []byte) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: ReadSegment: %v", offset, err)
		}
		s.Close()
		flipByte(t, path, offset) // restore it
	}
}
