//go:build !linux

package durable

import "os"

func allocate(f *os.File, size int64) error { return f.Truncate(size) }
