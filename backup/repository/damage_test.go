package repository

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/durable"
	"holdfast/internal/durable/faultfs"
)

// changed returns content with one page of each chunk of its file changed.
func changed(c content, seed uint64) content {
	c = c.clone()
	for at := 0; at < len(c["a"]); at += ChunkSize {
		copy(c["a"][at+int(seed)%pagesPerChunk*PageSize:], noise(seed, PageSize))
	}
	return c
}

// mustBeWhole checks that a process that knows of no damage can restore a backup.
func mustBeWhole(t *testing.T, dir, id string, want content) {
	t.Helper()
	r, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := load(r, id); err != nil || differ(got, want) != "" {
		t.Errorf("%s: %v", id, err)
	}
}

// lostIndex returns ways to lose an index's information about its first record.
func lostIndex() map[string]func(t *testing.T, path string) {
	return map[string]func(t *testing.T, path string){
		"an entry": func(t *testing.T, path string) { flip(t, path, headerSize+10) },
		"tables": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			flip(t, path, info.Size()-digestSize-5)
		},
		"the file": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	}
}

// TestHealsBelowOverlays loses the index entries of chunks that are bases of the previous backup's overlays: the
// next backup that reads everything is complete.
func TestHealsBelowOverlays(t *testing.T) {
	t.Parallel()
	for name, lose := range lostIndex() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "r")
			r := mustOpen(t, dir)
			whole := content{"a": noise(1, 4*ChunkSize)}
			over := changed(whole, 2)
			mustStore(t, r, "b0", "", whole)
			mustStore(t, r, "b1", "b0", over)
			r.Close()
			lose(t, filepath.Join(dir, indexName(1)))
			r = mustOpen(t, dir)
			for _, id := range []string{"b2", "b3"} {
				if _, err := store(r, id, "b1", over); err != nil {
					t.Fatalf("%s after damage: %v", id, err)
				}
				mustBeWhole(t, dir, id, over)
			}
		})
	}
}

// TestDamagedIndexIsKnown: a reader that needs a record missing from the index, or one based on such a record, makes
// the damage known, so that the next backup reads everything.
func TestDamagedIndexIsKnown(t *testing.T) {
	t.Parallel()
	for name, lose := range lostIndex() {
		for what, need := range map[string]func(r *Repository) error{
			"a check": func(r *Repository) error {
				s, err := r.Snapshot("b1")
				if err != nil {
					return err
				}
				defer s.Close()
				return s.Check()
			},
			"a reader": func(r *Repository) error { return readOne(r, Ref{2, 0}) },
			"what is taken from the backup before": func(r *Repository) error {
				w, err := r.Begin()
				if err != nil {
					return err
				}
				defer w.Abort()
				p, err := w.NewPiece()
				if err != nil {
					return err
				}
				defer p.Close()
				return p.AddStored(Ref{2, 0}, ChunkSize)
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "r")
				r := mustOpen(t, dir)
				whole := content{"a": noise(1, 4*ChunkSize)}
				mustStore(t, r, "b0", "", whole)
				mustStore(t, r, "b1", "b0", changed(whole, 2))
				r.Close()
				lose(t, filepath.Join(dir, indexName(1)))
				r = mustOpen(t, dir)
				if err := need(r); !errors.Is(err, ErrDamaged) || !r.Damaged() {
					t.Errorf("%v; the damage is known: %v", err, r.Damaged())
				}
			})
		}
	}
}

// readOne reads a chunk.
func readOne(r *Repository, ref Ref) error {
	rd, err := r.NewReader()
	if err != nil {
		return err
	}
	defer rd.Close()
	_, err = rd.Chunk(ref, make([]byte, 0, ChunkSize))
	return err
}

// TestNothingOnADamagedRoot: damage found through one overlay prevents the reuse of other overlays on the same
// chunk.
func TestNothingOnADamagedRoot(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	c := content{"a": noise(1, ChunkSize)}
	mustStore(t, r, "b0", "", c)
	mustStore(t, r, "b1", "b0", changed(c, 2))
	over := changed(changed(c, 2), 3)
	mustStore(t, r, "b2", "b1", over)
	flip(t, filepath.Join(dir, packName(1, 0)), ChunkSize/2)
	if _, err := load(r, "b1"); !errors.Is(err, ErrDamaged) {
		t.Fatalf("the damage is not met: %v", err)
	}
	for _, base := range []string{"b2", ""} {
		id := "after " + base
		mustStore(t, r, id, base, over)
		mustBeWhole(t, dir, id, over)
	}
}

// TestVerified: Verified is true after everything was read since damage was found, until more damage is found.
func TestVerified(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	mustStore(t, r, "b1", "", content{"a": noise(1, 4*ChunkSize)})
	if r.Verified() {
		t.Error("verified at once")
	}
	mustVerify(t, r)
	flip(t, filepath.Join(dir, packName(1, 0)), ChunkSize/2)
	for range 2 {
		if err := readOne(r, Ref{1, 0}); !errors.Is(err, ErrDamaged) || r.Verified() {
			t.Errorf("%v; everything was read since: %v", err, r.Verified())
		}
	}
	mustVerify(t, r)
	if err := readOne(r, Ref{1, 0}); !errors.Is(err, ErrDamaged) || !r.Verified() {
		t.Errorf("what was known: %v; everything was read since: %v", err, r.Verified())
	}
	lostIndex()["the file"](t, filepath.Join(dir, indexName(1)))
	r.forgetIndex(1)
	if err := readOne(r, Ref{1, 1}); !errors.Is(err, ErrDamaged) || r.Verified() {
		t.Errorf("%v; everything was read since: %v", err, r.Verified())
	}
	mustVerify(t, r)
}

func mustVerify(t *testing.T, r *Repository) {
	t.Helper()
	if _, err := r.Verify(t.Context(), nil); err != nil || !r.Verified() {
		t.Errorf("verify: %v; everything was read: %v", err, r.Verified())
	}
}

// openReading opens the repository in dir through fsys, as a process that knows of no damage.
func openReading(t *testing.T, dir string, fsys durable.FS) *Repository {
	t.Helper()
	r := newRepository(dir, fsys)
	r.failed = ErrReadOnly
	t.Cleanup(func() { r.Close() })
	return r
}

// badByte is a disk with one unreadable byte.
func badByte(name string, at int64, err error) *faultfs.FS {
	return &faultfs.FS{Unreadable: func(path string) (int64, error) {
		if strings.HasSuffix(path, name) {
			return at, err
		}
		return 0, nil
	}}
}

// TestUnreadable has an unreadable byte at various positions in every file. It is damage like any other: it is
// located, everything else is read, and the next backup is complete.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	origin := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, origin)
	mustStore(t, r, "b1", "", first())
	mustStore(t, r, "b2", "b1", second())
	r.Close()
	errnos := []error{syscall.EIO, syscall.EBADMSG, errCorrupt}
	for name, size := range files(t, origin) {
		for n, at := range []int64{0, headerSize, headerSize + 70, size / 2, size - 33, size - 1} {
			dir := filepath.Join(t.TempDir(), "r")
			if err := os.CopyFS(dir, os.DirFS(origin)); err != nil {
				t.Fatal(err)
			}
			mustEndure(t, dir, name, at, errnos[n%len(errnos)])
		}
	}
}

func mustEndure(t *testing.T, dir, name string, at int64, errno error) {
	t.Helper()
	disk := badByte(name, at, errno)
	affected := 0
	for id, want := range map[string]content{"b1": first(), "b2": second()} {
		got, err := load(openReading(t, dir, disk), id)
		if err == nil && differ(got, want) != "" || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of %s is %v: %s is read with %v", at, name, errno, id, err)
		}
		if err != nil {
			affected++
		}
	}
	r, err := open(dir, disk)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	report, err := r.Verify(t.Context(), nil)
	if err != nil || !errors.Is(report.Err(), ErrDamaged) || !strings.Contains(report.Err().Error(), name) || len(report.Affected) < affected {
		t.Errorf("byte %d of %s is %v, %d backups cannot be read: verify finds %+v, %v", at, name, errno, affected, report, err)
	}
	base := "b2"
	if strings.HasPrefix(name, manifestDir) {
		base = "" // like openBase
	}
	if _, err := store(r, "b3", base, second()); err != nil {
		t.Errorf("byte %d of %s is %v: store: %v", at, name, errno, err)
		return
	}
	if got, err := load(openReading(t, dir, disk), "b3"); err != nil || differ(got, second()) != "" {
		t.Errorf("byte %d of %s is %v: the next backup: %v", at, name, errno, err)
	}
}

// TestPassingError: a temporary error is not damage.
func TestPassingError(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	mustStore(t, mustOpen(t, dir), "b1", "", first())
	for name := range files(t, dir) {
		for _, errno := range []error{syscall.ENOMEM, syscall.EMFILE, syscall.EINTR} {
			r := openReading(t, dir, badByte(name, headerSize, errno))
			if _, err := load(r, "b1"); !errors.Is(err, errno) || errors.Is(err, ErrDamaged) {
				t.Errorf("%s is %v: read: %v", name, errno, err)
			}
			if _, err := r.Verify(t.Context(), nil); !errors.Is(err, errno) || r.Damaged() || r.Verified() {
				t.Errorf("%s is %v: verify: %v", name, errno, err)
			}
		}
	}
}

// TestNothingRemovedWithoutIndex loses an index that a backup needs, or one that has only the bases of a backup's overlays. Nothing is
// removed until no backup needs it: the packs are whole, and the index may be brought back.
func TestNothingRemovedWithoutIndex(t *testing.T) {
	t.Parallel()
	whole := content{"a": noise(1, 4*ChunkSize)}
	over := changed(whole, 2)
	for lost, needing := range map[uint32]string{2: "b1", 1: "b1"} {
		for what, remove := range map[string]func(r *Repository) error{
			"Clean":   func(r *Repository) error { _, err := r.Clean(); return err },
			"Collect": func(r *Repository) error { _, err := r.Collect(t.Context()); return err },
		} {
			dir := filepath.Join(t.TempDir(), "r")
			r := mustOpen(t, dir)
			mustStore(t, r, "b0", "", whole)
			mustStore(t, r, "b1", "b0", over)
			if lost == 1 { // else its manifest needs it
				if err := r.Delete("b0"); err != nil {
					t.Fatal(err)
				}
			}
			r.Close()
			index := filepath.Join(dir, indexName(lost))
			if err := os.Rename(index, index+".hidden"); err != nil {
				t.Fatal(err)
			}
			before := len(files(t, dir))
			r = mustOpen(t, dir)
			if err := r.CheckNeeded(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), indexName(lost)) {
				t.Errorf("a check without index %d: %v", lost, err)
			}
			if err := remove(r); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), indexName(lost)) || len(files(t, dir)) != before {
				t.Errorf("%s without index %d: %v, %d files of %d", what, lost, err, len(files(t, dir)), before)
			}
			r.Close()
			if err := os.Rename(index+".hidden", index); err != nil {
				t.Fatal(err)
			}
			r = mustOpen(t, dir)
			if err := remove(r); err != nil {
				t.Errorf("%s with it: %v", what, err)
			}
			if err := r.CheckNeeded(t.Context()); err != nil {
				t.Errorf("a check with it: %v", err)
			}
			mustBeWhole(t, dir, needing, over)
			r.Close()
			if err := os.Remove(index); err != nil {
				t.Fatal(err)
			}
			r = mustOpen(t, dir)
			for _, id := range []string{"b0", "b1"} {
				if err := r.Delete(id); err != nil && !errors.Is(err, ErrNotFound) {
					t.Fatal(err)
				}
			}
			if err := remove(r); err != nil {
				t.Errorf("%s of what no backup needs: %v", what, err)
			}
		}
	}
}

// TestSessionOfLostFiles: a session whose index and packs are lost keeps its number while a manifest names it, so that the
// backup stays damaged and does not get the records of another.
func TestSessionOfLostFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	mustStore(t, r, "b1", "", first())
	mustStore(t, r, "b2", "b1", second())
	last := r.sessions
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	lost, err := filepath.Glob(filepath.Join(dir, "*", fmt.Sprintf("%08x*", last)))
	if err != nil || len(lost) < 2 {
		t.Fatalf("%q, %v", lost, err)
	}
	for _, path := range lost {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	r = mustOpen(t, dir)
	if s, err := r.Snapshot("b2"); err != nil {
		t.Fatal(err)
	} else {
		s.Close()
	}
	w, err := r.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if w.session <= last {
		t.Errorf("the next session is %d, and the lost one was %d", w.session, last)
	}
}

// TestNamesOfLostFiles: a repository that has lost all its files, manifests too, gives their names to no others, if the clock is right.
// Otherwise it has names all the same.
func TestNamesOfLostFiles(t *testing.T) {
	t.Parallel()
	made := func(at time.Time) (names []string) {
		dir := filepath.Join(t.TempDir(), "r")
		r := mustOpen(t, dir)
		r.now = func() time.Time { return at }
		mustStore(t, r, "b1", "", first())
		mustStore(t, r, "b2", "b1", second())
		for name := range files(t, dir) {
			if _, numbered := NumberOf(filepath.ToSlash(name)); numbered {
				names = append(names, name)
			}
		}
		if err := r.Close(); err != nil || len(names) < 4 {
			t.Fatal(names, err)
		}
		return names
	}
	before := made(time.Now())
	for _, name := range made(time.Now().Add(time.Minute)) {
		if slices.Contains(before, name) {
			t.Errorf("%s is the name of another file than before", name)
		}
	}
	for _, at := range []time.Time{{}, time.Unix(lastDated, 0), time.Unix(1<<32-1, 0), time.Unix(1<<40, 0)} {
		made(at)
	}
}
