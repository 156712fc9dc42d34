package backup

import (
	"os"

	"golang.org/x/sys/unix"

	"holdfast/internal/durable"
)

// sync makes everything below the directory durable with one syncfs, which writes the dirty pages of the file system
// in the best order; an fsync for each of a thousand small files would wait for the disk each time. If syncfs does
// not report write errors, sync syncs each file.
func (t *tree) sync() error {
	if !durable.SyncfsReports() {
		return durable.SyncTree(t.dir.Name())
	}
	return unix.Syncfs(int(t.dir.Fd()))
}

// beginSync starts writeback of a part of a file, so that tree.sync waits less at the end. It guarantees nothing.
func beginSync(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
