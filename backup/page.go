package backup

import (
	"encoding/binary"

	"holdfast/backup/wal/xlog"
)

const (
	pageSize = 8 << 10
	// pagesPerSegment is the maximum number of pages in a file of a relation. The
	// block number in a checksum counts through all its files.
	pagesPerSegment = 131072
)

// checksumSeeds are the initial values of the 32 sums of a page (PostgreSQL,
// storage/checksum_impl.h).
var checksumSeeds = [32]uint32{
	0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
	0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
	0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
	0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
}

const fnvPrime = 16777619

// pageChecksum computes the checksum of an 8 KiB page with the given block number in its relation's fork. The field
// that holds the checksum counts as zeros.
func pageChecksum(page []byte, block uint32) uint16 {
	page = page[:pageSize:pageSize]
	sums := checksumSeeds
	sums[2] ^= uint32(binary.LittleEndian.Uint16(page[8:])) // cancels out below
	// Process eight sums at a time, down all rows, so that they stay in registers.
	for j := 0; j < len(sums); j += 8 {
		s := (*[8]uint32)(sums[j:])
		s0, s1, s2, s3, s4, s5, s6, s7 := s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
		for at := 4 * j; at <= pageSize-32; at += 4 * len(sums) {
			row := (*[32]byte)(page[at:])
			s0 ^= binary.LittleEndian.Uint32(row[0:])
			s1 ^= binary.LittleEndian.Uint32(row[4:])
			s2 ^= binary.LittleEndian.Uint32(row[8:])
			s3 ^= binary.LittleEndian.Uint32(row[12:])
			s4 ^= binary.LittleEndian.Uint32(row[16:])
			s5 ^= binary.LittleEndian.Uint32(row[20:])
			s6 ^= binary.LittleEndian.Uint32(row[24:])
			s7 ^= binary.LittleEndian.Uint32(row[28:])
			s0 = s0*fnvPrime ^ s0>>17
			s1 = s1*fnvPrime ^ s1>>17
			s2 = s2*fnvPrime ^ s2>>17
			s3 = s3*fnvPrime ^ s3>>17
			s4 = s4*fnvPrime ^ s4>>17
			s5 = s5*fnvPrime ^ s5>>17
			s6 = s6*fnvPrime ^ s6>>17
			s7 = s7*fnvPrime ^ s7>>17
		}
		*s = [8]uint32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
	result := uint32(0)
	for _, s := range sums {
		for range 2 { // two rounds of zeros
			s = s*fnvPrime ^ s>>17
		}
		result ^= s
	}
	return uint16((result^block)%65535 + 1)
}

// pageLSN returns the end of the last WAL record that changed the page.
func pageLSN(page []byte) xlog.LSN {
	return xlog.LSN(uint64(binary.LittleEndian.Uint32(page))<<32 | uint64(binary.LittleEndian.Uint32(page[4:])))
}

// pageIsSound reports whether the page is as PostgreSQL wrote it: its checksum is correct, or it is new.
func pageIsSound(page []byte, block uint32) bool {
	if binary.LittleEndian.Uint16(page[14:]) == 0 { // pd_upper
		return allZero(page)
	}
	return binary.LittleEndian.Uint16(page[8:]) == pageChecksum(page, block)
}

func allZero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.LittleEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}
