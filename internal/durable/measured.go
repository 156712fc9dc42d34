package durable

// Measured is an FS that reports every change it makes to a footprint. A second
// name that Link gives a file is not counted.
type Measured struct {
	FS
	Footprint *Footprint
}

// measuredFile is a file whose size is counted whenever it is synced or closed.
type measuredFile struct {
	File
	count *FootprintFile
}

// Create implements FS.
func (m Measured) Create(path string) (File, error) {
	f, err := m.FS.Create(path)
	if err != nil {
		return nil, err
	}
	return measuredFile{f, m.Footprint.Created(path)}, nil
}

// Reopen implements FS.
func (m Measured) Reopen(path string) (File, error) {
	f, err := m.FS.Reopen(path)
	if err != nil {
		return nil, err
	}
	return measuredFile{f, m.Footprint.Opened(path)}, nil
}

// Truncate implements FS.
func (m Measured) Truncate(path string, size int64) error {
	count := m.Footprint.Opened(path)
	err := m.FS.Truncate(path, size)
	count.Grown()
	return err
}

// Rename implements FS.
func (m Measured) Rename(from, to string) error {
	return m.Footprint.Without(to, func() error { return m.FS.Rename(from, to) })
}

// Remove implements FS.
func (m Measured) Remove(path string) error {
	return m.Footprint.Without(path, func() error { return m.FS.Remove(path) })
}

// Sync implements Handle.
func (f measuredFile) Sync() error {
	err := f.File.Sync()
	f.count.Grown()
	return err
}

// Close implements Handle.
func (f measuredFile) Close() error {
	err := f.File.Close()
	f.count.Grown()
	return err
}
