//go:build !linux

package diskio

import (
	"errors"
	"os"
)

// SetDirect has no counterpart here.
func SetDirect(*os.File, bool) error { return errors.ErrUnsupported }

// mapMemory: Go's does.
func mapMemory(int) []byte { return nil }

func unmapMemory([]byte) {}

// SyncData makes f durable.
func SyncData(f *os.File) error { return f.Sync() }

// SyncfsReports: syncfs(2) is Linux's.
func SyncfsReports() bool { return false }
