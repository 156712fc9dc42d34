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

// SyncfsReports: syncfs(2) is Linux's.
func SyncfsReports() bool { return false }
