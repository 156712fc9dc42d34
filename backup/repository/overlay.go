package repository

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// An overlay lists the pages of a chunk that differ from another chunk, with their
// content.

// appendOverlay appends the pages of content that differ from root to pages, and returns their mask.
func appendOverlay(pages, root, content []byte) (uint16, []byte) {
	mask := uint16(0)
	for n := 0; n < len(content); n += PageSize {
		end := min(n+PageSize, len(content))
		if !bytes.Equal(root[n:end], content[n:end]) {
			mask |= 1 << (n / PageSize)
			pages = append(pages, content[n:end]...)
		}
	}
	return mask, pages
}

// applyOverlay copies the pages over content, and reports whether they fit exactly.
func applyOverlay(content []byte, mask uint16, pages []byte) bool {
	for ; mask != 0; mask &= mask - 1 {
		start := bits.TrailingZeros16(mask) * PageSize
		if start >= len(content) {
			return false
		}
		n := copy(content[start:min(start+PageSize, len(content))], pages)
		if n < min(PageSize, len(content)-start) {
			return false
		}
		pages = pages[n:]
	}
	return len(pages) == 0
}

func appendMask(b []byte, mask uint16) []byte { return binary.LittleEndian.AppendUint16(b, mask) }

const maskSize = 2
