package repository

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/durable/faultfs"
)

// days stores a backup per day, each with one more changed page, collects after each, and returns their contents.
func days(t *testing.T, r *Repository, from, to int) map[string]content {
	t.Helper()
	want := map[string]content{}
	c := content{"a": noise(1, 4*ChunkSize), "b": noise(2, ChunkSize)}
	for n := range to {
		c = c.clone()
		page := n % (4 * pagesPerChunk)
		copy(c["a"][page*PageSize:], noise(uint64(100+n), PageSize))
		if n < from {
			continue
		}
		id := fmt.Sprintf("d%04d", n)
		base := fmt.Sprintf("d%04d", n-1)
		if n == 0 {
			base = ""
		}
		mustStore(t, r, id, base, c)
		want[id] = c
		if _, err := r.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// TestMerge stores many small backups: there are few files, all backups are complete, and concurrent readers are not
// disturbed.
func TestMerge(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	r := mustOpen(t, dir)
	want := days(t, r, 0, manySmall-2)
	inside, err := r.Snapshot("d0007")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	beside, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	other, err := beside.Snapshot("d0007")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := errors.Join(inside.Check(), other.Check()); err != nil { // its indexes are open now
		t.Fatal(err)
	}
	before := indexes(t, dir)
	for id, c := range days(t, r, manySmall-2, 3*manySmall) {
		want[id] = c
	}
	if after := indexes(t, dir); before != manySmall-2 || after > manySmall {
		t.Errorf("%d indexes became %d", before, after)
	}
	if all, most := len(files(t, dir)), len(want)+2*manySmall; all > most {
		t.Errorf("%d files, at most %d were expected", all, most)
	}
	for name, s := range map[string]*Snapshot{"inside": inside, "beside": other} {
		got, err := loadSnapshot(s)
		if err != nil {
			t.Errorf("a reader %s: %v", name, err)
		} else if diff := differ(got, want["d0007"]); diff != "" {
			t.Errorf("a reader %s: %s", name, diff)
		}
	}
	mustHold(t, r, want)
	r.Close()
	r = mustOpen(t, dir)
	mustHold(t, r, want)
	inside.Close()
	for id := range want {
		if id == "d0090" {
			continue
		}
		if err := r.Delete(id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustHold(t, r, map[string]content{"d0090": want["d0090"]})
	if size := sum(files(t, dir)); size > 14*ChunkSize {
		t.Errorf("%d bytes are left for one backup of five chunks, each with the one it lies on", size)
	}
}

// TestGarbageWithoutBase ends a Collect at each of its operations, when everything is garbage: overlays are left
// without their bases, and no backup uses them.
func TestGarbageWithoutBase(t *testing.T) {
	t.Parallel()
	for _, many := range []int{1, manySmall} {
		for k, fired := 0, true; fired; k++ {
			dir := filepath.Join(t.TempDir(), "r")
			r := mustOpen(t, dir)
			mustStore(t, r, "kept", "", content{"b": first()["b"]})
			mustStore(t, r, "b1", "", first())
			mustStore(t, r, "b2", "b1", second())
			if err := errors.Join(r.Delete("b1"), r.Delete("b2"), r.Close()); err != nil {
				t.Fatal(err)
			}
			fs := &faultfs.FS{Err: syscall.ENOSPC}
			r, err := open(dir, fs)
			if err != nil {
				t.Fatal(err)
			}
			r.many = many
			fs.Arm(func(n int, _, _ string) bool { return n >= k })
			_, _ = r.Collect(t.Context())
			fired = fs.Fired() != ""
			fs.Arm(nil)
			r.Close()
			r = mustOpen(t, dir)
			mustStore(t, r, "b3", "", second())
			mustHold(t, r, map[string]content{"kept": {"b": first()["b"]}, "b3": second()})
			r.Close()
		}
	}
}

func indexes(t *testing.T, dir string) (n int) {
	t.Helper()
	for name := range files(t, dir) {
		if strings.HasPrefix(name, indexDir) {
			n++
		}
	}
	return n
}
