// Package diskio has what os.File lacks: writes past the page cache and memory to
// write from, syncs of no more than content, and whether a sync of all can be
// trusted.
//
// What is large and not read again soon would push out of the page cache what
// is, and to make room for it there takes longer than to write it.
package diskio

import (
	"errors"
	"io"
	"syscall"
	"unsafe"
)

// Align is what the position, the length and the address of a direct write are
// multiples of, in bytes. A device that wants them still rounder refuses with
// EINVAL.
const Align = 4096

// Fits reports whether p can be written directly to position at.
func Fits(p []byte, at int64) bool {
	return len(p) > 0 && len(p)%Align == 0 && at%Align == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%Align == 0
}

// File is one that is written from its start to its end.
type File interface {
	io.Writer
	SetDirect(direct bool) error // as the function
}

// Mode is how a [File] is written to; the zero Mode is through the page cache.
type Mode int

const (
	buffered Mode = iota
	direct
	neverDirect // the file system or the device has refused that
)

// Write writes p to f, whose position is at: past the page cache where that
// fits and f can.
func (m *Mode) Write(f File, p []byte, at int64) (int, error) {
	return m.write(f, p, at, func(p []byte, _ int64) (int, error) { return f.Write(p) })
}

// FileAt is a [File] that can be written anywhere.
type FileAt interface {
	File
	io.WriterAt
}

// WriteAt is Write wherever the position of f is.
func (m *Mode) WriteAt(f FileAt, p []byte, at int64) (int, error) {
	return m.write(f, p, at, f.WriteAt)
}

func (m *Mode) write(f File, p []byte, at int64, writeAt func([]byte, int64) (int, error)) (int, error) {
	if err := m.set(f, Fits(p, at)); err != nil {
		return 0, err
	}
	n, err := writeAt(p, at)
	if *m == direct && errors.Is(err, syscall.EINVAL) { // the device wants it still rounder
		if err := m.Buffered(f); err != nil {
			return 0, err
		}
		*m = neverDirect
		more, err := writeAt(p[n:], at+int64(n)) // a part may have been written
		return n + more, err
	}
	return n, err
}

// Buffered has what is written to f in other ways go through the page cache.
func (m *Mode) Buffered(f File) error { return m.set(f, false) }

func (m *Mode) set(f File, want bool) error {
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
