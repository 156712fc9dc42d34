package backup

import "os"

// tree is a directory to be made durable with everything below it. It is opened before the first file is written:
// the kernel reports to a descriptor only the write errors since it was opened.
type tree struct {
	dir *os.File
}

func openTree(dir string) (*tree, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	return &tree{f}, nil
}

func (t *tree) close() { t.dir.Close() }
