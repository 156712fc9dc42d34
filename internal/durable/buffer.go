package durable

import "unsafe"

// Buffer is memory whose address is aligned for direct writes.
type Buffer struct{ Bytes []byte }

// NewBuffer returns a Buffer of size bytes, a multiple of Align.
func NewBuffer(size int) *Buffer {
	b := make([]byte, size+Align)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(Align-1))
	return &Buffer{b[skip : skip+size : skip+size]}
}
