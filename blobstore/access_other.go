//go:build !linux

package blobstore

import (
	"io/fs"
	"syscall"
	"time"
)

const openFlags = syscall.O_RDONLY | syscall.O_NOFOLLOW

// changedAt returns 0: when a file was changed is not known.
func changedAt(fs.FileInfo) int64 { return 0 }

// usedAt returns when a file was written.
func usedAt(info fs.FileInfo) time.Time { return info.ModTime() }
