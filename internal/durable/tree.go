package durable

import "os"

// Tree is a directory to be made durable with everything below it. It is opened before the first file is written:
// the kernel reports to a descriptor only the write errors since it was opened.
type Tree struct {
	dir *os.File
}

// OpenTree opens a directory. The caller closes the Tree.
func OpenTree(dir string) (*Tree, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Tree{f}, nil
}

// Close closes the directory.
func (t *Tree) Close() { t.dir.Close() }
