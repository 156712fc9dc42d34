package wal

import "holdfast/diskio"

// Occupied returns the disk usage of the archive's files. A read-only archive does
// not count it.
func (a *Archive) Occupied() int64 { return a.footprint.Bytes() }

// Occupied returns how many bytes the files of the archive in dir occupy on
// disk, without opening it. Where there is none it is 0.
func Occupied(dir string) (int64, error) { return diskio.MeasureOccupied(dir) }

// measured is a fileSystem that reports every change to a footprint.
type measured struct {
	fileSystem
	footprint *diskio.Footprint
}

// measuredFile is a file whose size is counted whenever it is synced or closed.
type measuredFile struct {
	file
	count *diskio.FootprintFile
}

func (m measured) Create(path string, size int64) (file, error) {
	f, err := m.fileSystem.Create(path, size)
	if err != nil {
		return nil, err
	}
	return measuredFile{f, m.footprint.Created(path)}, nil
}

func (m measured) Open(path string) (file, error) {
	f, err := m.fileSystem.Open(path)
	if err != nil {
		return nil, err
	}
	return measuredFile{f, m.footprint.Opened(path)}, nil
}

func (m measured) Rename(from, to string) error {
	return m.footprint.Without(to, func() error { return m.fileSystem.Rename(from, to) })
}

func (m measured) Remove(path string) error {
	return m.footprint.Without(path, func() error { return m.fileSystem.Remove(path) })
}

// Sync implements file.
func (f measuredFile) Sync() error {
	err := f.file.Sync()
	f.count.Grown()
	return err
}

// Close implements file.
func (f measuredFile) Close() error {
	err := f.file.Close()
	f.count.Grown()
	return err
}
