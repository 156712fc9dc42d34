package blobstore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestPart writes a blob in parts, with more behind each than was synced, and
// cuts the power after each.
func TestPart(t *testing.T) {
	fs, parent := newPowerFS(func(string, string) bool { return false }), filepath.Join(t.TempDir(), "parent")
	if err := fs.disk.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{fs: fs})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	w, err := s.FinishPart(t.Context(), id, size, crc)
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

func mustFinish(t *testing.T, dir, id string, size int64, crc uint32, want string) {
	t.Helper()
	s := openStore(t, dir, Options{})
	defer s.Close()
	w, err := s.FinishPart(t.Context(), id, size, crc)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := w.Publish(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustRead(t, s, ref, want, "a power cut")
}

func TestDamagedPart(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	id, err := s.CreatePart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.ResumePart(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Write([]byte("whole"))
	size, crc, err := p.Sync()
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ResumePart(id, size+1, crc); !errors.Is(err, ErrNotFound) {
		t.Errorf("a part that is too short: %v", err)
	}
	for _, id := range []string{"", "..", "../format", strings.Repeat("0", 32)} {
		if _, err := s.ResumePart(id, 0, 0); !errors.Is(err, ErrNotFound) {
			t.Errorf("ResumePart(%q): %v", id, err)
		}
	}
	flipByte(t, filepath.Join(dir, "parts", id), 2)
	if _, err := s.FinishPart(t.Context(), id, size, crc); !errors.Is(err, ErrDamaged) {
		t.Errorf("FinishPart: %v", err)
	}
}
