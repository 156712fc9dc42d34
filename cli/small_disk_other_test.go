//go:build !linux

package cli_test

// smallDisk skips the test: only on Linux do the tests mount file systems.
func (m *machine) smallDisk(string) (fill, empty func()) {
	m.t.Helper()
	m.t.Skip("only Linux has the small file system this test needs")
	return nil, nil
}
