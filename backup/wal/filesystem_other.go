//go:build !linux

package wal

import "os"

func reserve(f *os.File, size int64) error { return f.Truncate(size) }
