package diskio

import (
	"runtime"
	"sync"
	"unsafe"
)

// Buffer is memory fit for direct writes, by its address and, where the system
// has huge pages, by lying within one: a disk that is given 64 pages from
// anywhere for each 256 KiB takes in an eighth less. It is there as long as the
// Buffer can be reached; that Bytes can be is not enough.
type Buffer struct {
	Bytes []byte
	from  *stretch // nil for memory of Go's
}

// hugePage is the size of those of most processors, in bytes. On others a
// stretch is of ordinary pages.
const hugePage = 2 << 20

// stretch is memory of the system's that buffers are cut from. It goes back when
// none of them can be reached.
type stretch struct {
	rest []byte // what is not yet of a buffer
}

// newest is the stretch to cut from next, nil where there is none.
var newest struct {
	sync.Mutex
	*stretch
}

// NewBuffer returns a Buffer of size bytes, a multiple of Align. It costs more
// than other memory, and is to be used again: a [sync.Pool] fits.
func NewBuffer(size int) *Buffer {
	newest.Lock()
	defer newest.Unlock()
	if newest.stretch == nil || len(newest.rest) < size {
		newest.stretch = newStretch(size)
	}
	s := newest.stretch
	if s == nil {
		return goBuffer(size)
	}
	b := &Buffer{Bytes: s.rest[:size:size], from: s}
	if s.rest = s.rest[size:]; len(s.rest) == 0 {
		newest.stretch = nil
	}
	return b
}

// goBuffer returns a Buffer of Go's memory.
func goBuffer(size int) *Buffer {
	return &Buffer{Bytes: aligned(make([]byte, size+Align), Align, size)}
}

// newStretch returns a stretch with room for size bytes, nil where the system
// has none to give.
func newStretch(size int) *stretch {
	size = (size + hugePage - 1) / hugePage * hugePage
	mapped := mapMemory(size + hugePage)
	if mapped == nil {
		return nil
	}
	s := &stretch{rest: aligned(mapped, hugePage, size)}
	runtime.AddCleanup(s, unmapMemory, mapped)
	return s
}

// aligned returns size bytes of b that begin at a multiple of align, a power of
// two.
func aligned(b []byte, align, size int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(align-1))
	return b[skip : skip+size : skip+size]
}
