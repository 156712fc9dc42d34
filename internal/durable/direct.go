package durable

import (
	"errors"
	"io"
	"syscall"
	"unsafe"
)

// Align is the required alignment in bytes of the offset, the length and the address of a direct write. A device
// that needs a larger one returns EINVAL.
const Align = 4096

// fits reports whether p can be written directly at offset at.
func fits(p []byte, at int64) bool {
	return len(p) > 0 && len(p)%Align == 0 && at%Align == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%Align == 0
}

// DirectWriter is a file that is written sequentially.
type DirectWriter interface {
	io.Writer
	SetDirect(direct bool) error // like the function SetDirect
}

// WriteMode tracks whether writes to one [DirectWriter] bypass the page cache. The
// zero value is for a file that has not been written to.
type WriteMode int

const (
	buffered WriteMode = iota
	direct
	neverDirect // the file system or the device refused it
)

// Write writes p to f, whose position is at. It bypasses the page cache if the
// alignment of p and at allows it and f supports it.
func (m *WriteMode) Write(f DirectWriter, p []byte, at int64) (int, error) {
	return m.write(f, p, at, func(p []byte, _ int64) (int, error) { return f.Write(p) })
}

// DirectWriterAt is a [DirectWriter] that can be written at any position.
type DirectWriterAt interface {
	DirectWriter
	io.WriterAt
}

// WriteAt is Write for a position other than that of f.
func (m *WriteMode) WriteAt(f DirectWriterAt, p []byte, at int64) (int, error) {
	return m.write(f, p, at, f.WriteAt)
}

func (m *WriteMode) write(f DirectWriter, p []byte, at int64, writeAt func([]byte, int64) (int, error)) (int, error) {
	if err := m.set(f, fits(p, at)); err != nil {
		return 0, err
	}
	n, err := writeAt(p, at)
	if *m == direct && errors.Is(err, syscall.EINVAL) { // the device needs a larger alignment
		if err := m.Buffered(f); err != nil {
			return 0, err
		}
		*m = neverDirect
		more, err := writeAt(p[n:], at+int64(n)) // a part may have been written
		return n + more, err
	}
	return n, err
}

// Buffered makes writes to f that bypass m use the page cache.
func (m *WriteMode) Buffered(f DirectWriter) error { return m.set(f, false) }

func (m *WriteMode) set(f DirectWriter, want bool) error {
	switch {
	case want && *m == buffered:
		*m = direct
		if f.SetDirect(true) != nil {
			*m = neverDirect
		}
	case !want && *m == direct:
		*m = buffered
		return f.SetDirect(false)
	}
	return nil
}
