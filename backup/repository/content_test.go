package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// content is the content of a test's backup by path.
type content map[string][]byte

// noise returns n incompressible bytes, the same for the same seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

func (c content) clone() content {
	next := content{}
	for path, b := range c {
		next[path] = bytes.Clone(b)
	}
	return next
}

// first returns a content with all kinds of chunks: whole, short, zero, duplicate.
func first() content {
	zero := make([]byte, 3*ChunkSize)
	copy(zero[2*ChunkSize:], noise(7, 100))
	return content{
		"a": noise(1, 3*ChunkSize+100),
		"b": append(noise(2, ChunkSize), noise(1, ChunkSize)...),
		"c": zero,
		"d": nil,
		"e": bytes.Repeat([]byte("compressible "), 40000),
	}
}

// second returns a changed first: some pages, a larger file, a removed one, a new one.
func second() content {
	c := first()
	copy(c["a"][ChunkSize+5*PageSize:], noise(3, PageSize))
	copy(c["a"][3*ChunkSize:], noise(4, 10))
	c["b"] = append(c["b"], noise(5, PageSize)...)
	delete(c, "d")
	c["f"] = noise(6, ChunkSize+1)
	return c
}

// store writes a backup of c, compared with the backup base.
func store(r *Repository, id, base string, c content) (stored int64, err error) {
	w, err := r.Begin()
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	m := &Manifest{Backup: Backup{ID: id, StartedAt: time.Unix(1e9, 0).UTC(), PostgresVersion: "15.1"}}
	m.Entries = append(m.Entries, Entry{Path: "dir", Mode: fs.ModeDir | 0o700, ModTime: time.Unix(1, 2)})
	old := map[string]*Entry{}
	if base != "" {
		s, err := r.Snapshot(base)
		if err != nil {
			return 0, err
		}
		defer s.Close()
		for i := range s.Entries {
			old[s.Entries[i].Path] = &s.Entries[i]
		}
	}
	p, err := w.NewPiece()
	if err != nil {
		return 0, err
	}
	defer p.Close()
	for _, path := range []string{"a", "b", "c", "d", "e", "f"} {
		b, ok := c[path]
		if !ok {
			continue
		}
		e, err := storeFile(p, old[path], path, b)
		if err != nil {
			return 0, err
		}
		m.Entries = append(m.Entries, e)
	}
	_, stored, err = w.Commit(m)
	return stored, err
}

func storeFile(p *Piece, old *Entry, path string, b []byte) (Entry, error) {
	e := Entry{Path: path, Mode: 0o600, ModTime: time.Unix(5, 6), Size: int64(len(b))}
	var bases []Ref
	if old != nil {
		_ = old.Chunks.Refs(func(ref Ref) error {
			bases = append(bases, ref)
			return nil
		})
	}
	for n := 0; n*ChunkSize < len(b); n++ {
		base := Ref{}
		if n < len(bases) {
			base = bases[n]
		}
		if err := p.Add(b[n*ChunkSize:min(len(b), (n+1)*ChunkSize)], base); err != nil {
			return e, err
		}
	}
	done, err := p.Flush()
	e.Chunks, e.CRC32C = done.Chunks, done.CRC32C
	return e, err
}

// load reads a backup back.
func load(r *Repository, id string) (content, error) {
	s, err := r.Snapshot(id)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return loadSnapshot(s)
}

func loadSnapshot(s *Snapshot) (content, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	rd, err := s.r.NewReader()
	if err != nil {
		return nil, err
	}
	defer rd.Close()
	c := content{}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.IsDir() {
			continue
		}
		b := make([]byte, 0, e.Size)
		err := rd.Each(e.Chunks, func(chunk []byte) error {
			if chunk == nil {
				chunk = zeros[:min(ChunkSize, e.Size-int64(len(b)))]
			}
			b = append(b, chunk...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		c[e.Path] = b
	}
	return c, nil
}

// mustHold checks that the repository has exactly these backups, each complete.
func mustHold(t testing.TB, r *Repository, want map[string]content) {
	t.Helper()
	ids, err := r.Backups()
	if err != nil {
		t.Fatal(err)
	}
	if len(ids) != len(want) {
		t.Errorf("the repository has the backups %v, want %d", ids, len(want))
	}
	for id, c := range want {
		got, err := load(r, id)
		if err != nil {
			t.Errorf("backup %s: %v", id, err)
			continue
		}
		if diff := differ(got, c); diff != "" {
			t.Errorf("backup %s: %s", id, diff)
		}
	}
	report, err := r.Verify(t.Context(), nil)
	if err != nil || report.Err() != nil || report.Backups != len(want) {
		t.Errorf("verify: %+v, %v", report, err)
	}
}

func differ(got, want content) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d files, want %d", len(got), len(want))
	}
	for path := range want {
		if !bytes.Equal(got[path], want[path]) {
			return path + " has another content"
		}
	}
	return ""
}

// files lists the repository's files and their sizes.
func files(t testing.TB, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		name, _ := filepath.Rel(dir, path)
		all[name] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustStore(t testing.TB, r *Repository, id, base string, c content) int64 {
	t.Helper()
	n, err := store(r, id, base, c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// mustOpen opens a repository in which sessions are numbered from 1.
func mustOpen(t testing.TB, dir string) *Repository {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	r.now = func() time.Time { return time.Time{} }
	t.Cleanup(func() { r.Close() })
	return r
}

func sum(files map[string]int64) (n int64) {
	for _, size := range files {
		n += size
	}
	return n
}

// flip changes one bit of a file.
func flip(t testing.TB, path string, position int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, position); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << rand.IntN(8)
	if _, err := f.WriteAt(b, position); err != nil {
		t.Fatal(err)
	}
}
