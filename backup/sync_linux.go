package backup

import (
	"os"

	"golang.org/x/sys/unix"

	"holdfast/diskio"
)

// sync makes everything below the directory durable: with one syncfs, which writes
// the file system's dirty pages in the best order, where an fsync for each of
// a thousand small files would each wait for the disk. Where syncfs does not
// report what could not be written, each file is asked.
func (t *tree) sync() error {
	if !diskio.SyncfsReports() {
		return syncFiles(t.dir.Name())
	}
	return unix.Syncfs(int(t.dir.Fd()))
}

// beginSync has the kernel begin to write a part of a file, so that tree.sync
// does not wait for all of it at the end. It promises nothing.
func beginSync(f *os.File, offset, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), offset, n, unix.SYNC_FILE_RANGE_WRITE)
}
