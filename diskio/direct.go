// Package diskio has what os.File lacks: writes past the page cache, syncs of no
// more than content, and whether a sync of all can be trusted.
//
// What is large and not read again soon would push out of the page cache what
// is, and to make room for it there takes longer than to write it.
package diskio

import "unsafe"

// Align is what the position, the length and the address of a direct write are
// multiples of, in bytes. A device that wants them still rounder refuses with
// EINVAL.
const Align = 4096

// Buffer returns size bytes, a multiple of Align, at an address fit for direct
// writes.
func Buffer(size int) []byte {
	b := make([]byte, size+Align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (Align - 1)
	return b[skip : skip+uintptr(size) : skip+uintptr(size)]
}

// Fits reports whether p can be written directly to position at.
func Fits(p []byte, at int64) bool {
	return len(p) > 0 && len(p)%Align == 0 && at%Align == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%Align == 0
}
