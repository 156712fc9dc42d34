package repository

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zeebo/blake3"
)

// copyFiles copies the files of a repository as Files lists them.
func copyFiles(t *testing.T, r *Repository, to string) {
	t.Helper()
	f, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := slices.Clone(f.Manifests)
	for _, p := range f.Packs {
		names = append(names, p.Name)
		content, err := os.ReadFile(filepath.Join(r.dir, p.Name))
		if err != nil || int64(len(content)) != p.Size || blake3.Sum256(content) != p.Digest {
			t.Errorf("%s is not what its index says: %v", p.Name, err)
		}
	}
	for _, index := range f.Indexes {
		names = append(names, IndexName(index))
		content, err := io.ReadAll(index)
		digest, digestErr := Digest(index)
		if n := len(content) - digestSize; errors.Join(err, digestErr) != nil || blake3.Sum256(content[:n]) != digest {
			t.Errorf("%s has another digest: %v, %v", index.Name(), err, digestErr)
		}
	}
	slices.SortFunc(names, Compare)
	for _, name := range names {
		if !ValidName(name) {
			t.Errorf("%q is not valid", name)
		}
		content, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if filepath.Dir(names[0]) != packDir || filepath.Dir(names[len(names)-1]) != manifestDir {
		t.Errorf("the order is %q", names)
	}
}

// TestFiles: a copy of the files has all backups, also after collections and merges, and nothing that no backup needs.
func TestFiles(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, filepath.Join(t.TempDir(), "r"))
	want := days(t, r, 0, manySmall+3)
	for id := range want {
		if id < "d0010" {
			delete(want, id)
			if err := r.Delete(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := r.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := r.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	copyFiles(t, r, to)
	copied := mustOpen(t, to)
	mustHold(t, copied, want)
	if removed, err := copied.Clean(); err != nil || len(removed) > 0 {
		t.Errorf("the copy has %q too many, %v", removed, err)
	}
}

// TestFilesOfDamaged: an index that cannot be read is named, and the others are listed.
func TestFilesOfDamaged(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "r")
	days(t, mustOpen(t, dir), 0, 3)
	if err := os.Truncate(filepath.Join(dir, indexName(2)), 100); err != nil {
		t.Fatal(err)
	}
	r, err := OpenForReading(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.Files()
	if err != nil || len(f.Indexes) != 2 || !slices.Equal(f.Unreadable, []uint32{2}) {
		t.Errorf("%v, %v", f, err)
	}
	f.Close()
	r.removal.Lock()
	if _, err := r.Files(); !errors.Is(err, ErrBusy) {
		t.Errorf("during a collection: %v", err)
	}
	r.removal.Unlock()
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "packs", "packs/x", "packs/../x.pack", "index/00000001.pack", "index/1.index", "manifests/.manifest", "other/00000001.index", "packs/00000001-000000.pack/x", "/packs/00000001-000000.pack"} {
		if ValidName(name) {
			t.Errorf("%q is valid", name)
		}
	}
	for name, want := range map[string]uint32{"packs/0000000a-000000.pack": 10, "index/0000000b.index": 11} {
		if n, ok := NumberOf(name); !ok || n != want || !ValidName(name) {
			t.Errorf("%s has number %d", name, n)
		}
	}
}
