package repository

import "holdfast/diskio"

// Occupied returns how many bytes the repository's files occupy on disk.
func (r *Repository) Occupied() int64 { return r.footprint.Bytes() }

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

func (m measured) Create(path string) (file, error) {
	f, err := m.fileSystem.Create(path)
	if err != nil {
		return nil, err
	}
	return measuredFile{f, m.footprint.Created(path)}, nil
}

func (m measured) Rename(from, to string) error {
	return m.footprint.Without(to, func() error { return m.fileSystem.Rename(from, to) })
}

func (m measured) Remove(path string) error {
	return m.footprint.Without(path, func() error { return m.fileSystem.Remove(path) })
}

// Sync implements handle.
func (f measuredFile) Sync() error {
	err := f.file.Sync()
	f.count.Grown()
	return err
}

// Close implements handle.
func (f measuredFile) Close() error {
	err := f.file.Close()
	f.count.Grown()
	return err
}
