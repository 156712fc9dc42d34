package wal

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"holdfast/backup/wal/xlog"
	"holdfast/backup/wal/xlog/xlogtest"
	"holdfast/internal/durable/faultfs"
)

// pruneFrom is after the first complete record of longWAL's fourth segment.
const pruneFrom = 4*smallSegment + 100_000

// TestPruneEndsEverywhere kills a process that prunes at each of its file operations, and fails each of them: the
// WAL to keep is there, byte for byte, and the next prune removes the rest.
func TestPruneEndsEverywhere(t *testing.T) {
	t.Parallel()
	b := longWAL(6, nil)
	from := store(t, b)
	from.Close()
	for k, finished := 0, false; !finished; k++ {
		killed, failed := copyArchive(t, from.dir), copyArchive(t, from.dir)
		finished = helper("prune", helperArgs{Archive: killed, Kill: k}).Run() == nil
		mustBePruned(t, killed, b, "killed at "+strconv.Itoa(k))

		fsys := &faultfs.FS{NoSync: true, Err: syscall.EIO}
		a, err := Open(failed, Options{FS: fsys})
		if err != nil {
			t.Fatal(err)
		}
		fsys.Arm(func(n int, _, _ string) bool { return n == k })
		if _, err := a.Prune([]Keep{{1, pruneFrom}}); (err == nil) != (fsys.Fired() == "") {
			t.Errorf("%s: %v", fsys.Fired(), err)
		}
		a.Close()
		mustBePruned(t, failed, b, fsys.Fired())
	}
}

// TestPruneOfNothingSyncsNothing: a prune is frequent, and mostly finds nothing to remove.
func TestPruneOfNothingSyncsNothing(t *testing.T) {
	t.Parallel()
	from := store(t, longWAL(6, nil))
	from.Close()
	fsys := &faultfs.FS{NoSync: true}
	a, err := Open(from.dir, Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if freed, err := a.Prune([]Keep{{1, pruneFrom}}); err != nil || freed == 0 {
		t.Fatalf("%d bytes were freed, %v", freed, err)
	}
	before := fsys.Syncs()
	if freed, err := a.Prune([]Keep{{1, pruneFrom}}); err != nil || freed != 0 || fsys.Syncs() != before {
		t.Errorf("%d bytes were freed with %d syncs, %v", freed, fsys.Syncs()-before, err)
	}
}

// TestVerifyDuringPrune: what another process prunes after an archive was opened is not damaged, and what it lacks in the middle is.
func TestVerifyDuringPrune(t *testing.T) {
	t.Parallel()
	b := longWAL(6, nil)
	from := store(t, b)
	from.Close()
	reader, err := Open(from.dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	pruner, err := Open(from.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := pruner.Prune([]Keep{{1, pruneFrom}}); err != nil || freed == 0 {
		t.Fatalf("%d bytes were freed, %v", freed, err)
	}
	pruner.Close()
	if problems, err := reader.Verify(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	left, err := filepath.Glob(filepath.Join(from.dir, "1", "*"+compressedSuffix))
	if err != nil || len(left) < 2 {
		t.Fatalf("%q, %v", left, err)
	}
	if err := os.Remove(left[1]); err != nil {
		t.Fatal(err)
	}
	if problems, err := reader.Verify(t.Context()); err != nil || len(problems) != 1 || problems[0].File != filepath.Base(left[1]) {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestNeeds: of the files of an archive, and of one that it lacks, those are needed that a prune keeps.
func TestNeeds(t *testing.T) {
	t.Parallel()
	a := store(t, longWAL(6, nil))
	defer a.Close()
	before, err := a.Stored()
	if err != nil {
		t.Fatal(err)
	}
	keep := []Keep{{1, pruneFrom}}
	needs := a.Needs(keep)
	if _, err := a.Prune(keep); err != nil {
		t.Fatal(err)
	}
	after, err := a.Stored()
	if err != nil || len(after) == len(before) {
		t.Fatal(len(after), err)
	}
	for _, f := range before {
		if kept := slices.ContainsFunc(after, func(left StoredFile) bool { return left.String() == f.String() }); needs(f) != kept {
			t.Errorf("%s is kept: %t, and needed: %t", f, kept, needs(f))
		}
	}
	lost := StoredFile{Generation: 2, Name: "000000010000000000000001" + compressedSuffix}
	if needs(lost) || !a.Needs([]Keep{{2, 0}})(lost) {
		t.Error("a segment of a generation that the archive lacks is needed without a backup, or not with one")
	}
}

func mustBePruned(t *testing.T, dir string, b *xlogtest.Builder, when string) {
	t.Helper()
	a, err := Open(dir, Options{})
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	defer a.Close()
	if err := a.Check(t.Context(), 1, 1, pruneFrom, b.Pos(), nil); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if _, err := a.Prune([]Keep{{1, pruneFrom}}); err != nil {
		t.Errorf("%s, and again: %v", when, err)
	}
	if n := a.Sizes(1).Segments; n != 3 {
		t.Errorf("%s: %d segments are left", when, n)
	}
	if err := a.Check(t.Context(), 1, 1, pruneFrom, b.Pos(), nil); err != nil {
		t.Errorf("%s, and again: %v", when, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "1", "0*")); len(left) != 5 { // two with a summary, one partial
		t.Errorf("%s: there are %v", when, left)
	}
}

func copyArchive(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "wal")
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestPruneLeavesTheEnd keeps only the end of the archive, in the middle of a segment and where a segment is full:
// the writer continues there.
func TestPruneLeavesTheEnd(t *testing.T) {
	t.Parallel()
	partial := longWAL(4, nil)
	full := &xlogtest.Builder{Start: smallSegment}
	full.Record(21, 0, xlogtest.MainData([]byte{0}))
	full.Record(xlog.ResourceXLOG, xlogtest.InfoSwitch, nil)
	full.Write(make([]byte, smallSegment-full.Len())) // padding
	for name, b := range map[string]*xlogtest.Builder{"partial": partial, "full": full} {
		t.Run(name, func(t *testing.T) {
			a := store(t, b)
			for _, start := range []xlog.LSN{End, b.Pos()} {
				if _, err := a.Prune([]Keep{{1, start}}); err != nil {
					t.Fatal(err)
				}
			}
			if n := a.Sizes(1).Segments; n != 1 {
				t.Errorf("%d segments are left", n)
			}
			w, err := a.Writer(1)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			if timeline, end, ok := w.Latest(); timeline != 1 || end != b.Pos() || !ok {
				t.Errorf("it ends at %v on timeline %d, %t; want %v", end, timeline, ok, b.Pos())
			}
		})
	}
}

// TestResolveWhilePruning: a target is found while the segment before it, where the search begins, is pruned.
func TestResolveWhilePruning(t *testing.T) {
	t.Parallel()
	b := longWAL(3, nil)
	written := store(t, b)
	since := b.Start + smallSegment
	target := Target{Generation: 1, Since: since, LSN: since + smallSegment/2}
	for range 100 {
		dir := filepath.Join(t.TempDir(), "wal")
		if err := written.Link(dir); err != nil {
			t.Fatal(err)
		}
		a, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		pruned := make(chan error, 1)
		go func() {
			_, err := a.Prune([]Keep{{1, since}})
			pruned <- err
		}()
		for range 20 {
			if _, err := a.Resolve(t.Context(), target); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(<-pruned, a.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
