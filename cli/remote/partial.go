package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// What the names of partial downloads begin and end with.
const (
	partialPrefix = ".holdfast-"
	partialSuffix = ".part"
)

// partial is the name under which a download that is not yet whole waits to
// be gone on with, beside the file it becomes. It says which bytes it is of.
func (src downloadSource) partial(name string) string {
	id := sha256.Sum256([]byte(src.version))
	return filepath.Join(filepath.Dir(name), partialPrefix+hex.EncodeToString(id[:12])+partialSuffix)
}

// isPartial reports whether a file's name is that of a partial download.
func isPartial(name string) bool {
	return strings.HasPrefix(name, partialPrefix) && strings.HasSuffix(name, partialSuffix)
}

// openPartial opens a partial download for this process alone, until it is
// closed.
func openPartial(root *os.Root, partial string) (*os.File, error) {
	for {
		file, err := root.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		// Other errors are those of file systems that have no locks.
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, failf(exitConflict, "the same is being downloaded into %s already", filepath.Dir(file.Name()))
		}
		opened, err := file.Stat()
		if there, lstatErr := root.Lstat(partial); err == nil && lstatErr == nil && os.SameFile(opened, there) {
			return file, nil
		}
		file.Close() // who had it until now has renamed or removed it
	}
}
