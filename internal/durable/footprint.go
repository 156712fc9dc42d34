package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// footprintBlock is the unit in which file systems give space to files, in bytes.
const footprintBlock = 4096

// Occupied returns how many bytes of the disk a file of size bytes occupies.
func Occupied(size int64) int64 {
	return (size + footprintBlock - 1) / footprintBlock * footprintBlock
}

// Footprint counts the bytes that the files of a directory occupy on disk, in
// whole blocks and without the directories themselves. It measures the directory
// once. From then on each writer reports the changes it makes, so reading the
// figure costs nothing. It is safe for concurrent use.
type Footprint struct{ bytes atomic.Int64 }

// Bytes returns what the files occupy now. A file that is open for writing
// counts with the size it had when it was last synced.
func (p *Footprint) Bytes() int64 { return p.bytes.Load() }

// Measure adds all files below dir. dir must not change meanwhile.
func (p *Footprint) Measure(dir string) error {
	occupied, err := MeasureOccupied(dir)
	p.bytes.Add(occupied)
	return err
}

// MeasureOccupied returns how many bytes the files below dir occupy on disk. A
// directory that does not exist occupies nothing. Files that disappear meanwhile
// are left out.
func MeasureOccupied(dir string) (occupied int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				occupied += Occupied(info.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return occupied, fmt.Errorf("measure what %s occupies on disk: %w", dir, err)
	}
	return occupied, nil
}

// Without calls remove, which removes the file at path or replaces it by one
// that is counted already, and takes the old file out of the figure when remove
// succeeds.
func (p *Footprint) Without(path string, remove func() error) error {
	gone := occupiedBy(path)
	err := remove()
	if err == nil {
		p.bytes.Add(-gone)
	}
	return err
}

// FootprintFile counts one file that is being written.
type FootprintFile struct {
	footprint *Footprint
	path      string
	counted   atomic.Int64
}

// Created counts the file at path, which was just created.
func (p *Footprint) Created(path string) *FootprintFile {
	f := &FootprintFile{footprint: p, path: path}
	f.Grown()
	return f
}

// Opened returns the counter of the file at path, which is counted already.
func (p *Footprint) Opened(path string) *FootprintFile {
	f := &FootprintFile{footprint: p, path: path}
	f.counted.Store(occupiedBy(path))
	return f
}

// Grown counts what the file has grown by. A file that no longer has its name
// keeps what was counted.
func (f *FootprintFile) Grown() {
	info, err := os.Lstat(f.path)
	if err != nil {
		return
	}
	now := Occupied(info.Size())
	f.footprint.bytes.Add(now - f.counted.Swap(now))
}

// occupiedBy returns what the file at path occupies, 0 if there is none.
func occupiedBy(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return Occupied(info.Size())
}
