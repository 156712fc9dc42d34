package repository

import "math/bits"

// castagnoliPoly is the polynomial of CRC-32C, with its bits reflected.
const castagnoliPoly = 0x82f63b78

// multiplyCRC multiplies two reflected polynomials modulo CRC-32C's, as zlib's crc32_combine does.
func multiplyCRC(a, b uint32) (product uint32) {
	for a != 0 {
		if bits.LeadingZeros32(a) == 0 {
			product ^= b
		}
		a <<= 1
		b = b>>1 ^ castagnoliPoly&-(b&1)
	}
	return product
}

// shiftCRC returns the polynomial x^(8n), the effect of n more bytes on a checksum.
func shiftCRC(n int64) uint32 {
	result, square := uint32(1)<<31, uint32(1)<<23 // 1, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = multiplyCRC(result, square)
		}
		square = multiplyCRC(square, square)
	}
	return result
}

// chunkShift is the shiftCRC of a whole chunk.
var chunkShift = shiftCRC(ChunkSize)

// CombineCRC32C returns the CRC-32C of two concatenated byte sequences from their CRC-32Cs first and second. n is
// the length of the second sequence.
func CombineCRC32C(first, second uint32, n int64) uint32 {
	shift := chunkShift
	if n != ChunkSize {
		shift = shiftCRC(n)
	}
	return multiplyCRC(first, shift) ^ second
}

// ZerosCRC32C returns the CRC-32C of n bytes of zeros.
func ZerosCRC32C(n int64) uint32 {
	// The checksum register starts as ones and ends inverted: n zeros shift the ones, and the final inversion is
	// undone.
	return ^multiplyCRC(^uint32(0), shiftCRC(n))
}
