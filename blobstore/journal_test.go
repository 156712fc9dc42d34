package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// collect returns an Options.Deliver that collects the notes.
func collect(notes *[]string) func([]Entry) {
	return func(entries []Entry) {
		for _, e := range entries {
			*notes = append(*notes, string(e.Note))
		}
	}
}

// written returns a store's directory with n published blobs, one per batch.
func written(t *testing.T, n int, opts Options) (dir string, refs []Ref) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, opts)
	for i := range n {
		ref, err := publish(t, s, fmt.Sprint("blob ", i))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	s.Close()
	return dir, refs
}

// TestEveryByteOfARecord flips each byte of a record: the blob must never be read as good, and later records must
// still be replayed.
func TestEveryByteOfARecord(t *testing.T) {
	dir, refs := written(t, 3, Options{})
	first, _ := refs[1].position()
	last, _ := refs[2].position()
	path := filepath.Join(dir, "journal", directoryName(first.Segment()))
	for offset := first.offset(); offset < last.offset(); offset++ {
		flipByte(t, path, offset)
		var notes []string
		s := openStore(t, dir, Options{Deliver: collect(&notes)})
		if _, err := s.Open(t.Context(), refs[1]); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: %v", offset-first.offset(), err)
		}
		if got := strings.Join(notes, ","); got != "blob 0,blob 2" {
			t.Errorf("byte %d: replayed %s", offset-first.offset(), got)
		}
		if err := s.ReadSegment(first.Segment(), func(Entry, []byte) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: ReadSegment: %v", offset-first.offset(), err)
		}
		s.Close()
		flipByte(t, path, offset) // restore it
	}
}

func flipByte(t *testing.T, path string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	_, err = f.ReadAt(b, offset)
	b[0] ^= 0x10
	if _, err2 := f.WriteAt(b, offset); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
}

// TestTornEnd truncates the journal at every length, like a crash during a write: complete records are replayed, and
// the rest is not an error.
func TestTornEnd(t *testing.T) {
	dir, refs := written(t, 3, Options{})
	path := filepath.Join(dir, "journal", directoryName(refs[0].Segment()))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := len(whole) - 1; size >= 0; size-- {
		for name, content := range map[string][]byte{"cut": whole[:size], "zeros": append(bytes.Clone(whole[:size]), make([]byte, len(whole)-size)...)} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			var notes []string
			s := openStore(t, dir, Options{Deliver: collect(&notes)})
			want := 0
			for _, ref := range refs[1:] {
				if at, _ := ref.position(); at.offset() <= int64(size) {
					want++
				}
			}
			if len(notes) != want {
				t.Errorf("%s at %d: replayed %v, want %d", name, size, notes, want)
			}
			if err := s.ReadSegment(refs[0].Segment(), func(Entry, []byte) error { return nil }); err != nil {
				t.Errorf("%s at %d: ReadSegment: %v", name, size, err)
			}
			s.Close()
		}
	}
}

// TestReplaySyncs kills a process between the write and the sync of a record, which the next process replays, and
// then cuts the power.
func TestReplaySyncs(t *testing.T) {
	lying := true
	fs, parent := newPowerFS(func(kind, path string) bool { return lying && kind == "file" && strings.Contains(path, "journal") }), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{fs: fs})
	ref, err := publish(t, s, "unsynced")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	lying = false
	var notes []string
	openStore(t, filepath.Join(parent, "store"), Options{fs: fs, Deliver: collect(&notes)}).Close()
	if len(notes) != 1 {
		t.Fatalf("replayed %v", notes)
	}
	if lost := afterCut(t, fs, parent, map[Ref]string{ref: "unsynced"}); len(lost) > 0 {
		t.Errorf("lost after it was replayed: %v", lost)
	}
}

// TestFlippedBlock flips bytes of a blob that is a file.
func TestFlippedBlock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := openStore(t, dir, Options{})
	content := strings.Repeat("0123456789abcdef", 3*blockSize/16+1)
	ref, err := publish(t, s, content)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := ref.path(s.blobs)
	for _, offset := range []int64{0, blockSize - 1, blockSize, int64(len(content)) - 1} {
		flipByte(t, path, offset)
		r, err := s.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if !errors.Is(err, ErrDamaged) || string(got) != content[:offset/blockSize*blockSize] {
			t.Errorf("byte %d: read %d bytes, %v", offset, len(got), err)
		}
		if err := r.Verify(offset, 1); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: Verify: %v", offset, err)
		}
		if _, err := r.ReadAt(make([]byte, 1), offset); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d: ReadAt: %v", offset, err)
		}
		if other := (offset + 2*blockSize) % int64(len(content)); r.Verify(other, 1) != nil {
			t.Errorf("byte %d: so is byte %d", offset, other)
		}
		r.Close()
		flipByte(t, path, offset)
	}
	info, _ := os.Stat(path)
	for offset := int64(len(content)); offset < info.Size(); offset++ {
		flipByte(t, path, offset)
		if r, err := s.Open(t.Context(), ref); err == nil {
			_, err = io.ReadAll(r)
			r.Close()
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d of the trailer: %v", offset, err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of the trailer: %v", offset, err)
		}
		flipByte(t, path, offset)
	}
}

func TestContentSize(t *testing.T) {
	for _, size := range []int64{0, 1, blockSize - 1, blockSize, blockSize + 1, 7 * blockSize, 1<<40 + 5} {
		if got := contentSize(fileSize(size)); got != size {
			t.Errorf("a content of %d bytes is taken for %d", size, got)
		}
	}
}

func TestDropSegment(t *testing.T) {
	dir, refs := written(t, 12, Options{SegmentSize: 200})
	s := openStore(t, dir, Options{})
	r, err := s.Open(t.Context(), refs[0])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Segments(), refs[0].Segment()) || slices.Contains(s.Segments(), refs[11].Segment()) {
		t.Errorf("segments %v are sealed, of %v to %v", s.Segments(), refs[0], refs[11])
	}
	for range 2 {
		if err := s.DropSegment(refs[0].Segment()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Open(t.Context(), refs[0]); !errors.Is(err, ErrNotFound) {
		t.Errorf("Open: %v", err)
	}
	if got, _ := io.ReadAll(r); string(got) != "blob 0" {
		t.Errorf("the open reader reads %q", got)
	}
}

// TestJournalShares counts the syncs of many publishers.
func TestJournalShares(t *testing.T) {
	counter := &faultfs.FS{}
	s := openStore(t, t.TempDir(), Options{fs: counter})
	if _, err := publish(t, s, "first"); err != nil {
		t.Fatal(err)
	}
	before := counter.Syncs()
	for range 10 {
		if _, err := publish(t, s, "alone"); err != nil {
			t.Fatal(err)
		}
	}
	if got := counter.Syncs() - before; got != 10 {
		t.Errorf("10 blobs alone took %d syncs", got)
	}
	s.journal.group.running <- struct{}{} // as if a sync were in progress
	before = counter.Syncs()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := publish(t, s, "together"); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < 50; {
		s.journal.group.mu.Lock()
		if s.journal.group.next != nil {
			waiting = len(s.journal.group.next.asked)
		}
		s.journal.group.mu.Unlock()
	}
	<-s.journal.group.running
	wg.Wait()
	if got := counter.Syncs() - before; got != 1 {
		t.Errorf("50 blobs that waited together took %d syncs", got)
	}
}

func TestCopy(t *testing.T) {
	dir, refs := written(t, 3, Options{SegmentSize: 100})
	var entries []Entry
	s := openStore(t, dir, Options{Deliver: func(e []Entry) { entries = append(entries, e...) }})
	var copies []Copy
	for _, ref := range refs {
		if err := s.ReadSegment(ref.Segment(), func(e Entry, blob []byte) error {
			if e.Ref == ref {
				copies = append(copies, Copy{Note: []byte("moved " + ref), Blob: blob})
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	entries = nil
	if err := s.Copy(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		if string(e.Note) != "moved "+string(refs[i]) {
			t.Errorf("delivered %q", e.Note)
		}
		mustRead(t, s, e.Ref, fmt.Sprint("blob ", i), "copy")
	}
}
