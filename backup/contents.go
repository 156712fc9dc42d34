package backup

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// fileSum is what the manifest says of a file.
type fileSum struct {
	size   int64 // bytes
	crc32c uint32
}

// contents are files by their slash-separated name in the data directory.
type contents map[string]fileSum

// castagnoli is CRC-32C's table, which the hash/crc32 package never changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum copies content to w and returns its size and checksum. buf is scratch.
func sum(w io.Writer, content io.Reader, buf []byte) (fileSum, error) {
	h := crc32.New(castagnoli)
	// Writer only: an *os.File's ReadFrom would bring its own buffer.
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(w, h)}, content, buf)
	return fileSum{size: n, crc32c: h.Sum32()}, err
}

// add enters a file, once.
func (c contents) add(name string, f fileSum) error {
	if _, twice := c[name]; twice {
		return fmt.Errorf("%s is there twice", name)
	}
	c[name] = f
	return nil
}

// take removes name from c, where it must be and be like f. It is how the
// archive is matched with the manifest, whichever comes first.
func (c contents) take(name string, f fileSum) error {
	other, ok := c[name]
	if !ok {
		return fmt.Errorf("%s is in only one of archive and manifest", name)
	}
	delete(c, name)
	if other.size != f.size {
		return fmt.Errorf("%s has %d bytes by the one and %d by the other of archive and manifest", name, other.size, f.size)
	}
	if other.crc32c != f.crc32c {
		return fmt.Errorf("%s has another checksum in the archive than in the manifest: it is damaged", name)
	}
	return nil
}

// onlyWAL refuses any file but WAL, which the server leaves out of the
// manifest.
func (c contents) onlyWAL() error {
	var others []string
	for name := range c {
		if !strings.HasPrefix(name, walPrefix) {
			others = append(others, name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.Sort(others)
	return fmt.Errorf("%d files are in only one of archive and manifest, the first is %s", len(others), others[0])
}
