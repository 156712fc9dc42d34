//go:build !linux

package blobstore

import "os"

func dataSync(f *os.File) error { return f.Sync() }
