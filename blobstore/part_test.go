package blobstore

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// TestPart writes a blob in parts, with more bytes after each than were synced, and cuts the power after each.
func TestPart(t *testing.T) {
	fs, parent, s, id := newPoweredPart(t)
	size, crc := int64(0), uint32(0)
	want := ""
	for i := range 4 {
		text := strings.Repeat(string(rune('a'+i)), 100_000)
		p, err := s.ResumePart(id, size, crc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if size, crc, err = p.Sync(); err != nil {
			t.Fatal(err)
		}
		p.Write([]byte("lost"))
		p.Close()
		want += text
		left := t.TempDir()
		fs.cut(t, parent, left)
		mustFinish(t, filepath.Join(left, "store"), id, size, crc, want)
	}
	w, err := s.FinishPart(t.Context(), id, []Section{{Size: size, CRC32C: crc}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Publish(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustRead(t, s, ref, want, "parts")
	if lost := afterCut(t, fs, parent, map[Ref]string{ref: want}); len(lost) > 0 {
		t.Error(lost)
	}
	if ids, err := s.Parts(); err != nil || len(ids) != 0 {
		t.Errorf("left: %v, %v", ids, err)
	}
}

// newPoweredPart returns an empty Part of a store in the directory parent of a file system whose power can be cut.
func newPoweredPart(t *testing.T) (fs *powerFS, parent string, s *Store, id string) {
	t.Helper()
	fs, parent = newPowerFS(func(string, string) bool { return false }), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, filepath.Join(parent, "store"), Options{fs: fs})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fs, parent, s, id
}

// TestSections writes the sections of a Part in any order, and cuts the power while others are written.
func TestSections(t *testing.T) {
	fs, parent, s, id := newPoweredPart(t)
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 300_000), "the end"}
	sections, want := make([]Section, len(texts)), strings.Join(texts, "")
	write := func(n int, text string) *Part {
		t.Helper()
		p, err := s.OpenSection(id, int64(n*len(texts[0])), int64(len(text)))
		if err == nil {
			_, err = p.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i, n := range []int{2, 0, 1} {
		p := write(n, texts[n])
		var err error
		if sections[n].Size, sections[n].CRC32C, err = p.Sync(); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if i < 2 { // the last to come has begun before
			write(1, "gone").Close()
			if err := s.DiscardSection(id, int64(len(texts[0])), int64(len(texts[1]))); err != nil && !errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
		}
	}
	left := t.TempDir()
	fs.cut(t, parent, left)
	for _, s := range []*Store{openStore(t, filepath.Join(left, "store"), Options{}), s} {
		var read strings.Builder
		w, err := s.FinishPart(t.Context(), id, sections, &read)
		if err != nil {
			t.Fatal(err)
		}
		ref, err := w.Publish(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if mustRead(t, s, ref, want, "sections"); read.String() != want {
			t.Error("the content that was read back differs")
		}
	}
}

// TestSectionHasAnEnd writes beyond a section: nothing of that reaches the next one.
func TestSectionHasAnEnd(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	id, sections, content := writeSections(t, s, []int{10, 10})
	p, err := s.OpenSection(id, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, c := range []struct {
		text string
		n    int
		want error
	}{{strings.Repeat("x", 11), 0, ErrSectionEnd}, {string(content[:9]), 9, nil}, {"xx", 0, ErrSectionEnd}, {string(content[9:10]), 1, nil}, {"x", 0, ErrSectionEnd}} {
		if n, err := p.Write([]byte(c.text)); n != c.n || !errors.Is(err, c.want) {
			t.Errorf("Write(%q) = %d, %v; want %d, %v", c.text, n, err, c.n, c.want)
		}
	}
	w, err := s.FinishPart(t.Context(), id, sections, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}

// TestDamagedSection keeps the other sections of a Part of which one is damaged.
func TestDamagedSection(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	id, size, crc := writePart(t, s, "whole")
	sections := []Section{{Size: size, CRC32C: crc}, {}}
	const damaged = " and damaged"
	p, err := s.OpenSection(id, size, int64(len(damaged)))
	if err != nil {
		t.Fatal(err)
	}
	p.Write([]byte(damaged))
	if sections[1].Size, sections[1].CRC32C, err = p.Sync(); err != nil {
		t.Fatal(err)
	}
	p.Close()
	flipByte(t, filepath.Join(dir, "parts", id), size+3)
	if _, err := s.FinishPart(t.Context(), id, sections, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("FinishPart: %v", err)
	}
	for n, want := range map[int]error{0: nil, 1: ErrDamaged} {
		r, err := s.OpenPart(id, int64(n)*size, sections[n].Size, sections[n].CRC32C)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); !errors.Is(err, want) {
			t.Errorf("section %d: %v, want %v", n, err, want)
		}
		r.Close()
	}
}

func mustFinish(t *testing.T, dir, id string, size int64, crc uint32, want string) {
	t.Helper()
	s := openStore(t, dir, Options{})
	defer s.Close()
	w, err := s.FinishPart(t.Context(), id, []Section{{Size: size, CRC32C: crc}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Publish(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustRead(t, s, ref, want, "a power cut")
}

// writePart creates a Part with all of text.
func writePart(t *testing.T, s *Store, text string) (id string, size int64, crc uint32) {
	t.Helper()
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.ResumePart(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Write([]byte(text))
	size, crc, err = p.Sync()
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	return id, size, crc
}

func TestDamagedPart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	id, size, crc := writePart(t, s, "whole")
	if _, err := s.ResumePart(id, size+1, crc); !errors.Is(err, ErrNotFound) {
		t.Errorf("a part that is too short: %v", err)
	}
	for _, id := range []string{"", "..", "../format", strings.Repeat("0", 32)} {
		if _, err := s.ResumePart(id, 0, 0); !errors.Is(err, ErrNotFound) {
			t.Errorf("ResumePart(%q): %v", id, err)
		}
	}
	flipByte(t, filepath.Join(dir, "parts", id), 2)
	if _, err := s.FinishPart(t.Context(), id, []Section{{Size: size, CRC32C: crc}}, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("FinishPart: %v", err)
	}
}

// TestPartIsKept fails each operation of turning a complete Part into a blob: its bytes remain, and become a blob
// later, even after a crash in between.
func TestPartIsKept(t *testing.T) {
	const text = "all of it"
	for k := 0; ; k++ {
		fs, dir := &faultfs.FS{Err: syscall.ENOSPC}, t.TempDir()
		s := openStore(t, dir, Options{fs: fs})
		id, size, crc := writePart(t, s, text)
		fs.Arm(func(n int, _, _ string) bool { return n == k })
		err := finish(t, s, id, size, crc)
		if fs.Fired() == "" {
			t.Logf("%d operations", k)
			return
		}
		if err == nil {
			continue // it failed after the record
		}
		mustFinish(t, crashed(t, dir), id, size, crc, text)
		if err := finish(t, s, id, size, crc); err != nil && !errors.Is(err, ErrReadOnly) {
			t.Errorf("after %q: %v", fs.Fired(), err)
		}
	}
}

// finish turns a Part into a blob.
func finish(t *testing.T, s *Store, id string, size int64, crc uint32) error {
	t.Helper()
	w, err := s.FinishPart(t.Context(), id, []Section{{Size: size, CRC32C: crc}}, nil)
	if err != nil {
		return err
	}
	_, err = w.Publish([]byte("note"), nil)
	return err
}

// crashed returns a copy of a store's directory in its current state.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestPartOfAnEndedWriter ends a Writer between the two steps of Publish.
func TestPartOfAnEndedWriter(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.FinishPart(t.Context(), id, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Secure()
	if err != nil {
		t.Fatal(err)
	}
	mustFinish(t, crashed(t, dir), id, 0, 0, "")
	if err := w.Abort(); err != nil || !s.HasPart(id) {
		t.Errorf("the part is there: %v, %v", s.HasPart(id), err)
	}
	if _, err := s.Open(t.Context(), ref); !errors.Is(err, ErrNotFound) {
		t.Errorf("the blob: %v", err)
	}
	if err := finish(t, s, id, 0, 0); err != nil || s.HasPart(id) {
		t.Errorf("published: %v, and the part is there: %v", err, s.HasPart(id))
	}
}
