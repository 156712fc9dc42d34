//go:build !linux

package blobstore

import (
	"io/fs"
	"syscall"
	"time"
)

const openFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW

// usedAt returns when a file was written.
func usedAt(info fs.FileInfo) time.Time { return info.ModTime() }
