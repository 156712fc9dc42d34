package wal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
)

// ErrHole means that the copy of an archive lacks the WAL before a piece, in the same segment.
var ErrHole = errors.New("the copy of the WAL lacks what came before")

// Copy writes a copy of an archive: first what [Archive.Stored] returned, then what a [Tap] did, in order. All calls
// may be repeated from the first on, with the same arguments. [Open] accepts the result once Sync has returned and
// the files that were named to Later are there. It is not safe for concurrent use.
type Copy struct {
	dir   string
	sizes map[int]uint64      // of segments, by generation
	later map[string]bool     // paths of segments that are put there later
	have  map[string]xlog.LSN // how many bytes of a partial segment there are, by path
	made  map[int]bool        // generations that have a directory
}

// NewCopy returns a copy in dir, which it creates when something is written.
func NewCopy(dir string) *Copy {
	return &Copy{dir: dir, sizes: map[int]uint64{}, later: map[string]bool{}, have: map[string]xlog.LSN{}, made: map[int]bool{}}
}

// ParseStored is the inverse of a StoredFile's Generation and Name in the form "generation/name". It refuses every
// other name.
func ParseStored(path string) (f StoredFile, err error) {
	generation, name, _ := strings.Cut(path, "/")
	number, err := strconv.Atoi(generation)
	if err != nil || number < 0 || strconv.Itoa(number) != generation || !validName(name) {
		return f, fmt.Errorf("%q is not the name of a file of a WAL archive", path)
	}
	return StoredFile{Generation: number, Name: name}, nil
}

// String returns the generation and the name, as [ParseStored] parses it.
func (f StoredFile) String() string { return strconv.Itoa(f.Generation) + "/" + f.Name }

// Partials returns the partial segments, with as much of them as there is.
func (c *Copy) Partials() (all []StoredFile) {
	for path, length := range c.have {
		if f, err := ParseStored(filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)); err == nil {
			f.Length = int64(length)
			all = append(all, f)
		}
	}
	return all
}

// Put writes a generation file or history file.
func (c *Copy) Put(generation int, name string, content []byte) error {
	f := StoredFile{Generation: generation, Name: name}
	if !f.isSmall() || generation < 0 {
		return fmt.Errorf("%q is not a file of a generation", name)
	}
	if err := c.makeDir(generation); err != nil {
		return err
	}
	if err := durable.WriteFile(f.Path(c.dir), content, 0o600); err != nil {
		return fmt.Errorf("copy WAL archive: %w", err)
	}
	if name == generationFile {
		delete(c.sizes, generation)
	}
	return nil
}

// Later says that the caller puts a segment's file there, with that much WAL, before the copy is opened. WAL for it is
// ignored where the file has it.
func (c *Copy) Later(f StoredFile) error {
	if f.IsPartial() {
		c.have[f.Path(c.dir)] = max(c.have[f.Path(c.dir)], xlog.LSN(f.Length))
	} else {
		c.later[f.Path(c.dir)] = true
	}
	return c.makeDir(f.Generation)
}

// WAL writes a piece of the WAL. The generation file must be there. The error wraps [ErrHole] if the piece begins
// within a segment of which the copy lacks the WAL before.
func (c *Copy) WAL(generation int, timeline uint32, from xlog.LSN, piece []byte) error {
	size, err := c.segmentSize(generation)
	if err != nil {
		return err
	}
	for len(piece) > 0 {
		n := uint64(from) / size
		part := piece[:min(xlog.LSN(len(piece)), xlog.LSN((n+1)*size)-from)]
		base := filepath.Join(c.dir, strconv.Itoa(generation), xlog.SegmentName(timeline, n, size))
		if !c.later[base+compressedSuffix] {
			if err := c.write(base+partialSuffix, size, from-xlog.LSN(n*size), part); err != nil {
				return err
			}
		}
		piece, from = piece[len(part):], from+xlog.LSN(len(part))
	}
	return nil
}

// Begin writes the beginning of a partial segment that was named to Later. The generation file must be there.
func (c *Copy) Begin(f StoredFile, content []byte) error {
	size, err := c.segmentSize(f.Generation)
	if err != nil {
		return err
	}
	return writePart(f.Path(c.dir), int64(size), content, 0)
}

// write writes a part of a partial segment.
func (c *Copy) write(path string, size uint64, at xlog.LSN, part []byte) error {
	if at > c.have[path] {
		return fmt.Errorf("%w: %s has %d bytes, and a piece begins at %d", ErrHole, filepath.Base(path), c.have[path], at)
	}
	if err := writePart(path, int64(size), part, int64(at)); err != nil {
		return err
	}
	c.have[path] = max(c.have[path], at+xlog.LSN(len(part)))
	return nil
}

// writePart writes a part of a file that has the size of a segment: what follows a record that switches segments
// counts, and may not be copied yet.
func writePart(path string, size int64, part []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("copy WAL: %w", err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() < size {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.WriteAt(part, at)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("copy WAL: %w", err)
	}
	return nil
}

// segmentSize returns the size of a generation's segments.
func (c *Copy) segmentSize(generation int) (uint64, error) {
	if size := c.sizes[generation]; size > 0 {
		return size, nil
	}
	known, err := readGeneration(filepath.Join(c.dir, strconv.Itoa(generation)))
	if notExist(err) || err == nil && known.SegmentSize == 0 {
		return 0, fmt.Errorf("%w: the size of the segments of generation %d", ErrHole, generation)
	}
	if err != nil {
		return 0, err
	}
	c.sizes[generation] = known.SegmentSize
	return known.SegmentSize, nil
}

func (c *Copy) makeDir(generation int) error {
	if c.made[generation] {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(c.dir, strconv.Itoa(generation)), 0o700); err != nil {
		return fmt.Errorf("copy WAL archive: %w", err)
	}
	c.made[generation] = true
	return nil
}

// Sync makes the copy durable.
func (c *Copy) Sync() error {
	if len(c.made) == 0 {
		return nil
	}
	if err := errors.Join(durable.SyncTree(c.dir), durable.SyncDir(durable.OS{}, filepath.Dir(c.dir))); err != nil {
		return fmt.Errorf("copy WAL archive: %w", err)
	}
	return nil
}
