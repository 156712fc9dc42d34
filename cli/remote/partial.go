package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Prefix and suffix of the names of partial downloads.
const (
	partialPrefix = ".holdfast-"
	partialSuffix = ".part"
)

// partial returns the name of the partial download of a file, beside it. The
// name identifies the version.
func (src downloadSource) partial(name string) string {
	return filepath.Join(filepath.Dir(name), src.partialsBegin()+shortHash(src.etag)+partialSuffix)
}

// partialsBegin returns the common prefix of the partial downloads of all
// versions.
func (src downloadSource) partialsBegin() string { return partialPrefix + shortHash(src.id) + "-" }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// removeOutdated removes partial downloads of other versions of the sources
// from a directory: they will not be resumed.
func removeOutdated(root *os.Root, dir string, sources []downloadSource) error {
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if errors.Is(err, fs.ErrNotExist) || aboutName(err) { // no directory of that name
		return nil
	}
	current := map[string]string{}
	for _, src := range sources {
		current[src.partialsBegin()] = src.partial("")
	}
	for _, entry := range entries {
		name := entry.Name()
		if keep, ours := current[name[:strings.LastIndex(name, "-")+1]]; !ours || name == keep || !isPartial(name) {
			continue
		}
		old, openErr := openPartial(root, filepath.Join(dir, name))
		if openErr != nil {
			continue // another process holds it, and removes it
		}
		err = errors.Join(err, root.Remove(filepath.Join(dir, name)), old.Close())
	}
	return err
}

// isPartial reports whether a file name is that of a partial download.
func isPartial(name string) bool {
	return strings.HasPrefix(name, partialPrefix) && strings.HasSuffix(name, partialSuffix)
}

// openPartial opens and locks a partial download for this process until it is
// closed.
func openPartial(root *os.Root, partial string) (*os.File, error) {
	for {
		file, err := root.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		// Other errors come from file systems without locks.
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, failf(exitConflict, "the same is being downloaded into %s already", filepath.Dir(file.Name()))
		}
		opened, err := file.Stat()
		if there, lstatErr := root.Lstat(partial); err == nil && lstatErr == nil && os.SameFile(opened, there) {
			return file, nil
		}
		file.Close() // the process that held it renamed or removed it
	}
}
