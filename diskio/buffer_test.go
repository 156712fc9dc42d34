package diskio

import (
	"bytes"
	"math"
	"runtime"
	"testing"
	"unsafe"
)

// TestNewBuffer fills buffers of several sizes, lets go of every other one, and
// finds the rest as they were: fit for direct writes, and nobody else's.
func TestNewBuffer(t *testing.T) {
	var kept []*Buffer
	for i := range 64 {
		for _, size := range []int{Align, hugePage / 8, hugePage / 2, hugePage - Align, hugePage, hugePage + Align} {
			b := NewBuffer(size)
			if len(b.Bytes) != size || cap(b.Bytes) != size || !Fits(b.Bytes, 0) {
				t.Fatalf("%d bytes, room for %d, at %p, of %d asked for", len(b.Bytes), cap(b.Bytes), b.Bytes, size)
			}
			if !bytes.Equal(b.Bytes, make([]byte, size)) {
				t.Fatalf("%d bytes are not zero", size)
			}
			for at := range b.Bytes {
				b.Bytes[at] = byte(i)
			}
			runtime.KeepAlive(b)
			if i%2 == 0 {
				kept = append(kept, b)
			}
		}
		runtime.GC()
	}
	for i, b := range kept {
		if want := byte(i / 6 * 2); bytes.Count(b.Bytes, []byte{want}) != len(b.Bytes) {
			t.Fatalf("buffer %d of %d bytes is not all %d", i, len(b.Bytes), want)
		}
	}
	runtime.KeepAlive(kept)
}

// TestNewBufferWithout has Go's memory where the system gives none.
func TestNewBufferWithout(t *testing.T) {
	const more = math.MaxInt - 4*hugePage // than there is
	if s := newStretch(more); s != nil {
		t.Fatal("there is memory without end")
	}
	if b := goBuffer(3 * Align); len(b.Bytes) != 3*Align || !Fits(b.Bytes, 0) {
		t.Errorf("%d bytes at %p", len(b.Bytes), b.Bytes)
	}
}

func TestAligned(t *testing.T) {
	b := make([]byte, 3*Align)
	for skip := range 2 * Align {
		a := aligned(b[skip:], Align, Align/2)
		if at := uintptr(unsafe.Pointer(&a[0])); at%Align != 0 || len(a) != Align/2 || cap(a) != Align/2 {
			t.Fatalf("%d bytes, room for %d, at %x", len(a), cap(a), at)
		}
	}
}
