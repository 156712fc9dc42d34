//go:build !linux

package meta

// unmap has no counterpart here.
func unmap(uintptr, int64) {}
