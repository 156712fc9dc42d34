package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"holdfast/internal/durable"
)

// TestPowerCut cuts the power after each acknowledgement, in the strict model of powerFS, and opens what is left.
func TestPowerCut(t *testing.T) {
	if lost := powerCuts(t, func(string, string) bool { return false }); len(lost) > 0 {
		t.Errorf("lost: %v", lost)
	}
}

// TestPowerCutNeedsEverySync omits one kind of sync at a time: if nothing is lost then, either the sync or
// TestPowerCut is useless.
func TestPowerCutNeedsEverySync(t *testing.T) {
	for name, ignore := range map[string]func(kind, path string) bool{
		"blob":              func(kind, path string) bool { return kind == "file" && strings.Contains(path, "/incoming/") },
		"format":            func(kind, path string) bool { return kind == "file" && strings.Contains(path, formatFile) },
		"name of blob":      func(kind, path string) bool { return strings.Contains(path, "/store/blobs/") },
		"name of directory": func(kind, path string) bool { return strings.HasSuffix(path, "/store/blobs") },
		"names in store":    func(kind, path string) bool { return strings.HasSuffix(path, "/store") },
		"record":            func(kind, path string) bool { return kind == "file" && strings.Contains(path, "/journal/") },
		"name of segment":   func(kind, path string) bool { return kind == "directory" && strings.HasSuffix(path, "/store/journal") },
		"name of store":     func(kind, path string) bool { return kind == "directory" && strings.HasSuffix(path, "/parent") },
	} {
		if lost := powerCuts(t, ignore); len(lost) == 0 {
			t.Errorf("without the sync of the %s nothing is lost", name)
		}
	}
}

// powerCuts returns what was acknowledged and is lost.
func powerCuts(t *testing.T, ignore func(kind, path string) bool) (lost []string) {
	t.Helper()
	fs, parent := newPowerFS(ignore), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{DirectorySize: 3, SegmentSize: 300, fs: fs})
	acknowledged, mu := map[Ref]string{}, sync.Mutex{}
	for round := range 4 {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				content := fmt.Sprint("blob ", round, i)
				for _, put := range []func(testing.TB, *Store, string) (Ref, error){put, publish} {
					ref, err := put(t, s, content)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					acknowledged[ref] = content
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		lost = append(lost, afterCut(t, fs, parent, acknowledged)...)
	}
	return lost
}

func afterCut(t *testing.T, fs *powerFS, parent string, acknowledged map[Ref]string) (lost []string) {
	t.Helper()
	left := t.TempDir()
	fs.cut(t, parent, left)
	return judge(left, acknowledged)
}

// judge returns what is lost or damaged in the store in a directory.
func judge(left string, acknowledged map[Ref]string) (lost []string) {
	replayed := map[Ref]bool{}
	s, err := Open(filepath.Join(left, "store"), Options{Deliver: func(entries []Entry) {
		for _, e := range entries {
			replayed[e.Ref] = true
		}
	}})
	if err != nil {
		return []string{err.Error()}
	}
	defer s.Close()
	for ref, want := range acknowledged {
		if ref.Segment() != 0 && !replayed[ref] {
			lost = append(lost, fmt.Sprintf("%s is not replayed", ref))
		}
		r, err := s.Open(context.Background(), ref)
		if err != nil {
			lost = append(lost, err.Error())
			continue
		}
		if got, _ := io.ReadAll(r); string(got) != want {
			lost = append(lost, fmt.Sprintf("%s holds %q, want %q", ref, got, want))
		}
		r.Close()
	}
	for _, number := range s.journal.numbers.all {
		if err := s.ReadSegment(number, func(Entry, []byte) error { return nil }); err != nil {
			lost = append(lost, err.Error())
		}
	}
	return lost
}

// refusingFS is a disk that is full for some syncs of the journal. The bytes of the first reach it all the same.
type refusingFS struct {
	*powerFS
	syncs   int // that are to fail
	reached bool
}

func (r *refusingFS) Create(path string) (durable.File, error) {
	f, err := r.powerFS.Create(path)
	if err != nil || !strings.Contains(path, "/journal/") {
		return f, err
	}
	return &refusingFile{f, r}, nil
}

type refusingFile struct {
	durable.File
	fs *refusingFS
}

func (f *refusingFile) Sync() error {
	if f.fs.syncs == 0 {
		return f.File.Sync()
	}
	if f.fs.syncs--; !f.fs.reached {
		f.fs.reached = true
		_ = f.File.Sync()
	}
	return syscall.ENOSPC
}

// TestRefusedRecord cuts the power after a record was refused that is on the disk. If the store could take it off the disk,
// it does not come back. Otherwise the store is read-only, and the file that the record names is there.
func TestRefusedRecord(t *testing.T) {
	for syncs, readOnly := range map[int]bool{1: false, 2: true} {
		fs, parent := &refusingFS{powerFS: newPowerFS(func(string, string) bool { return false })}, filepath.Join(t.TempDir(), "parent")
		if err := fs.OS.Mkdir(parent); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, filepath.Join(parent, "store"), Options{Inline: 1, fs: fs})
		if err := s.Log(t.Context(), []byte("before"), nil); err != nil {
			t.Fatal(err)
		}
		w, err := s.Create(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("refused")); err != nil {
			t.Fatal(err)
		}
		ref, err := w.Secure()
		if err != nil {
			t.Fatal(err)
		}
		fs.syncs = syncs
		if _, err := w.Publish([]byte(ref), nil); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d syncs: %v", syncs, err)
		}
		if err := s.writable(); readOnly != errors.Is(err, ErrReadOnly) {
			t.Errorf("%d syncs: then %v", syncs, err)
		}
		if !readOnly {
			mustHold(t, s, nil, "the record was refused")
		}
		left, replayed := t.TempDir(), []string(nil)
		fs.cut(t, parent, left)
		s = openStore(t, filepath.Join(left, "store"), Options{Deliver: collect(&replayed)})
		if want := []string{"before", string(ref)}[:1+min(1, syncs-1)]; !slices.Equal(replayed, want) {
			t.Errorf("%d syncs: replayed %q, want %q", syncs, replayed, want)
		}
		if readOnly {
			mustRead(t, s, ref, "refused", "the record came back")
		}
	}
}

// TestTornBatch cuts the power while a batch is on its way to a disk that writes its sectors in any order:
// everything acknowledged before is there, and the missing rest of the batch is not reported as damage.
func TestTornBatch(t *testing.T) {
	fs, parent := newPowerFS(func(string, string) bool { return false }), filepath.Join(t.TempDir(), "parent")
	if err := fs.OS.Mkdir(parent); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, filepath.Join(parent, "store"), Options{SegmentSize: 100 << 10, fs: fs})
	acknowledged, mu, random := map[Ref]string{}, sync.Mutex{}, rand.New(rand.NewPCG(1, 2))
	cuts := 0
	fs.before = func(path string) {
		if !strings.Contains(path, "/journal/") {
			return
		}
		mu.Lock()
		known := maps.Clone(acknowledged)
		mu.Unlock()
		for range 5 {
			left := t.TempDir()
			fs.tear(t, parent, left, random)
			for _, problem := range judge(left, known) {
				t.Errorf("cut %d: %s", cuts, problem)
			}
			cuts++
		}
	}
	for round := range 20 {
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				content := strings.Repeat(fmt.Sprintf("blob %d %d,", round, i), 1+i*i*10)
				ref, err := publish(t, s, content)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				acknowledged[ref] = content
			})
		}
		wg.Wait()
	}
	if cuts < 100 {
		t.Errorf("%d cuts", cuts)
	}
}
