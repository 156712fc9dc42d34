//go:build !linux

package diskio

import (
	"errors"
	"os"
)

// SetDirect has no counterpart here.
func SetDirect(*os.File, bool) error { return errors.ErrUnsupported }

// SyncData makes f durable.
func SyncData(f *os.File) error { return f.Sync() }

// SyncfsReports: syncfs(2) is Linux's.
func SyncfsReports() bool { return false }
