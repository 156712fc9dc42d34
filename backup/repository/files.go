package repository

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files are the files of a repository at one moment, for a copy of it. Without any of them a backup may be damaged.
// Packs and manifests may be removed meanwhile.
type Files struct {
	Packs     []PackFile
	Indexes   []*os.File // open, because an index can be replaced
	Manifests []string

	// Unreadable are the numbers of indexes that are damaged: which packs they describe is not known.
	Unreadable []uint32
}

// PackFile is a pack. A pack of that name with other content may follow once it was removed.
type PackFile struct {
	Name   string // relative to the repository, with slashes, as all names here
	Size   int64
	Digest Hash // of the whole file
}

// Files returns the files that backups need. The caller closes them. It returns ErrBusy while Collect or Clean runs.
func (r *Repository) Files() (f Files, err error) {
	if !r.removal.TryRLock() {
		return f, ErrBusy
	}
	defer r.removal.RUnlock()
	// Manifests first: an index that appears meanwhile is not needed by those that are listed.
	if f.Manifests, err = r.manifestNames(); err != nil {
		return f, err
	}
	numbers, err := r.indexed()
	if err != nil {
		return f, err
	}
	for _, number := range numbers {
		err := f.addIndex(r, number)
		if errors.Is(err, ErrDamaged) {
			f.Unreadable = append(f.Unreadable, number)
			continue
		}
		if err != nil {
			return Files{}, errors.Join(fmt.Errorf("list backup repository: %w", err), f.Close())
		}
	}
	return f, nil
}

func (r *Repository) manifestNames() (names []string, err error) {
	ids, err := r.Backups()
	for _, id := range ids {
		names = append(names, filepath.ToSlash(ManifestName(id)))
	}
	return names, err
}

// addIndex adds an index and its packs.
func (f *Files) addIndex(r *Repository, number uint32) error {
	x, err := r.loadIndex(number)
	if err != nil {
		return err
	}
	defer x.close()
	file, err := os.Open(r.path(x.name))
	if err != nil {
		return err
	}
	f.Indexes = append(f.Indexes, file)
	for _, p := range x.packs {
		f.Packs = append(f.Packs, PackFile{filepath.ToSlash(packName(number, p.number)), p.size, p.digest})
	}
	return nil
}

// Close closes the open files.
func (f *Files) Close() (err error) {
	for _, file := range f.Indexes {
		err = errors.Join(err, file.Close())
	}
	f.Indexes = nil
	return err
}

// IndexName returns the name of an open index.
func IndexName(f *os.File) string { return indexDir + "/" + filepath.Base(f.Name()) }

// Digest returns the digest that an index or a manifest ends with. Files with other content have another one.
func Digest(f *os.File) (h Hash, err error) {
	info, err := f.Stat()
	if err == nil {
		_, err = f.ReadAt(h[:], info.Size()-digestSize)
	}
	if err != nil {
		return h, fmt.Errorf("read the digest of a backup: %w", err)
	}
	return h, nil
}

// ValidName reports whether a name is that of a pack, index or manifest.
func ValidName(name string) bool {
	dir, base, _ := strings.Cut(name, "/")
	stem, suffix, _ := strings.Cut(base, ".")
	switch {
	case !fs.ValidPath(name) || strings.Contains(base, "/"):
		return false
	case dir == manifestDir:
		return suffix == "manifest" && validID(stem)
	}
	number, ok := numberOf(stem)
	return ok && (dir == indexDir && base == filepath.Base(indexName(number)) || dir == packDir && suffix == "pack")
}

// NumberOf returns the number of the index that a pack or index belongs to, false for a manifest.
func NumberOf(name string) (uint32, bool) {
	dir, base, _ := strings.Cut(name, "/")
	if dir == manifestDir {
		return 0, false
	}
	return numberOf(base)
}

// Compare orders names as a copy has to make them, so that it is a repository at every moment: packs, then indexes,
// then manifests.
func Compare(a, b string) int {
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
}

func rank(name string) int {
	dir, _, _ := strings.Cut(name, "/")
	return slices.Index([]string{packDir, indexDir, manifestDir}, dir)
}
