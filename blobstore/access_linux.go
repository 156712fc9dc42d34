package blobstore

import (
	"io/fs"
	"syscall"
	"time"
)

// openFlags: the time of access is that of Use. Neither the scrub nor a copy changes it.
const openFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NOATIME

// changedAt returns when a file was changed last: its content, its names or its mode.
func changedAt(info fs.FileInfo) int64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Ctim.Nano()
}

// usedAt returns when a file was last used, or written.
func usedAt(info fs.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	if used := time.Unix(stat.Atim.Unix()); used.After(info.ModTime()) {
		return used
	}
	return info.ModTime()
}
