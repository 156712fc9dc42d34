package offsite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/engine/objects"
)

// onlyFile returns the path of the only file below a directory of the blob store that has a size above least.
func onlyFile(t *testing.T, dir, below string, least int64) (found string) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join(dir, objects.Directory, below), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > least {
			if found != "" {
				err = fmt.Errorf("%s and %s", found, path)
			}
			found = path
		}
		return err
	}); err != nil || found == "" {
		t.Fatal(found, err)
	}
	return found
}

// hide has a path name a directory, which cannot be read as a file, or nothing. It returns what brings the file back.
func hide(t *testing.T, path string, gone bool) (restore func()) {
	t.Helper()
	err := os.Rename(path, path+".hidden")
	if err == nil && !gone {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		err := os.Remove(path)
		if gone {
			err = nil
		}
		if err := errors.Join(err, os.Rename(path+".hidden", path)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnreadableObjects: what records need and the disk does not give back, or has lost, stays in the copy. So it is with a
// segment of the journal, which is named, and with a large body, which is away then, while the appliance runs and after a start.
func TestUnreadableObjects(t *testing.T) {
	t.Parallel()
	for _, below := range []string{"journal", "blobs"} {
		for _, how := range []string{"unreadable", "gone", "gone at the start"} {
			if below == "blobs" && how == "unreadable" {
				continue // Walk lists it
			}
			t.Run(below+" "+how, func(t *testing.T) {
				t.Parallel()
				r, dir := directoryRepository(t), dataDir(t)
				s := openBucketStore(t, dir, nil)
				want := map[string]string{"key": strings.Repeat("x", 200_000)}
				if below == "journal" {
					clear(want)
					for n := range 20 {
						want[fmt.Sprint("key ", n)] = strings.Repeat("y", 1+n)
					}
				}
				for key, content := range want {
					s.put(t, key, content)
				}
				w, p := beginCopy(t, r, s)
				if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
					t.Fatal(err)
				}
				endCopy(t, w, p)
				s.close(t)
				path := onlyFile(t, dir, below, 1000)
				restore := func() {}
				if how == "gone at the start" {
					restore = hide(t, path, true)
				}
				s = openBucketStore(t, dir, nil)
				if how != "gone at the start" {
					restore = hide(t, path, how == "gone")
				}
				w, p = beginCopy(t, r, s)
				for range 2 {
					if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
						t.Fatal(err)
					}
				}
				if all := p.unreadable.all(); slices.Equal(all, []string{""}) != (below == "journal") {
					t.Errorf("unreadable are %q", all)
				}
				if away, err := s.Away(); err != nil || (away == 1) != (below == "blobs") {
					t.Errorf("%d are away, %v", away, err)
				}
				to := dataDir(t)
				s.copyMetadata(t, to)
				restored := restoreObjects(t, r, to)
				restored.mustHave(t, want, "restored")
				restored.close(t)
				if how != "gone at the start" {
					restore()
					if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
						t.Fatal(err)
					}
					if all := p.unreadable.all(); len(all) > 0 {
						t.Errorf("unreadable are still %q", all)
					}
				}
				for key := range want { // nothing needs it any more
					s.remove(t, key)
				}
				if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
					t.Fatal(err)
				}
				if how != "gone at the start" || below == "blobs" {
					endCopy(t, w, p)
					s.close(t)
					return
				}
				if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
					t.Fatal(err)
				}
				if all := p.unreadable.all(); len(all) > 0 {
					t.Errorf("unreadable are %q, which nothing needs", all)
				}
				endCopy(t, w, p)
				s.close(t)
			})
		}
	}
}

// TestUnreadableBody: a body that cannot be read before it was copied is named, until it can be read or nothing needs it.
func TestUnreadableBody(t *testing.T) {
	t.Parallel()
	r, dir := directoryRepository(t), dataDir(t)
	s := openBucketStore(t, dir, nil)
	s.put(t, "key", strings.Repeat("x", 200_000))
	path := onlyFile(t, dir, "blobs", 1000)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("damage"), 100_000)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	w, p := beginCopy(t, r, s)
	checkpoint := func() {
		t.Helper()
		if _, err := w.Checkpoint(t.Context(), p.entries); err != nil {
			t.Fatal(err)
		}
	}
	checkpoint()
	if all := p.unreadable.all(); !slices.Equal(all, []string{""}) {
		t.Errorf("unreadable are %q", all)
	}
	s.remove(t, "key")
	if err := errors.Join(s.core.Meta.Flush(), s.core.RemoveDiscarded()); err != nil {
		t.Fatal(err)
	}
	checkpoint()
	if all := p.unreadable.all(); len(all) > 0 {
		t.Errorf("unreadable are %q, which nothing needs", all)
	}
	endCopy(t, w, p)
	s.close(t)
}
