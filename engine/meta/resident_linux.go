package meta

import "golang.org/x/sys/unix"

// unmap takes the pages of a mapped file out of the process's memory. What is
// wrong with that is no harm: they stay.
func unmap(address uintptr, size int64) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, address, uintptr(size), unix.MADV_DONTNEED)
}
