package xlog

import (
	"maps"
	"math/bits"
	"slices"
)

// pageSet is a set of page numbers, stored as bitmaps of 4096 pages.
type pageSet struct {
	pieces map[uint32]*[64]uint64
	at     uint32
	piece  *[64]uint64 // pieces[at]
}

func (s *pageSet) add(number uint32) {
	if at := number >> 12; s.piece == nil || s.at != at {
		s.find(at)
	}
	s.piece[number>>6&63] |= 1 << (number & 63)
}

func (s *pageSet) find(at uint32) {
	if s.pieces == nil {
		s.pieces = map[uint32]*[64]uint64{}
	}
	piece := s.pieces[at]
	if piece == nil {
		piece = new([64]uint64)
		s.pieces[at] = piece
	}
	s.at, s.piece = at, piece
}

// all yields the numbers in the set, ascending.
func (s *pageSet) all(yield func(uint32) bool) { s.from(0)(yield) }

// from yields the numbers from first on, ascending. first is a multiple of 4096.
func (s *pageSet) from(first uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for _, at := range slices.Sorted(maps.Keys(s.pieces)) {
			if at >= first>>12 && !eachBit(at<<12, s.pieces[at], yield) {
				return
			}
		}
	}
}

func eachBit(base uint32, piece *[64]uint64, yield func(uint32) bool) bool {
	for i, word := range piece {
		for ; word != 0; word &= word - 1 {
			if !yield(base + uint32(i)<<6 + uint32(bits.TrailingZeros64(word))) {
				return false
			}
		}
	}
	return true
}
