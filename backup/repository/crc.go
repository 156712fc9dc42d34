package repository

import "holdfast/internal/crc"

// chunkShift is the effect of a whole chunk on a checksum.
var chunkShift = crc.Shift(crc.Castagnoli, ChunkSize)

// CombineCRC32C returns the CRC-32C of two joined byte sequences from their CRC-32Cs first and second. n is the length
// of the second sequence. It is quick where that is a whole chunk.
func CombineCRC32C(first, second uint32, n int64) uint32 {
	if n == ChunkSize {
		return crc.CombineShifted(crc.Castagnoli, first, second, chunkShift)
	}
	return crc.Combine(crc.Castagnoli, first, second, n)
}

// ZerosCRC32C returns the CRC-32C of n bytes of zeros.
func ZerosCRC32C(n int64) uint32 { return crc.Zeros(crc.Castagnoli, n) }
