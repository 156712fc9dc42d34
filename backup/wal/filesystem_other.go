//go:build !linux

package wal

import "os"

func reserve(f *os.File, size int64) error { return f.Truncate(size) }

func dataSync(f *os.File) error { return f.Sync() }
