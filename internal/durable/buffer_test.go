package durable

import "testing"

func TestNewBuffer(t *testing.T) {
	for _, size := range []int{Align, 3 * Align, 256 << 10, 1 << 20} {
		for range 16 {
			if b := NewBuffer(size).Bytes; len(b) != size || cap(b) != size || !fits(b, 0) {
				t.Fatalf("%d bytes, room for %d, at %p, of %d asked for", len(b), cap(b), b, size)
			}
		}
	}
}
