//go:build !linux

package durable

import (
	"errors"
	"os"
)

// SetDirect is not supported.
func SetDirect(*os.File, bool) error { return errors.ErrUnsupported }

// syncData makes f durable.
func syncData(f *os.File) error { return f.Sync() }

// Sync makes everything below the directory durable.
func (t *Tree) Sync() error { return SyncTree(t.dir.Name()) }

// SyncfsReports returns false, because syncfs(2) exists only on Linux.
func SyncfsReports() bool { return false }
