package blobstore

import "hash/crc32"

// joinCRC returns the CRC-32C of some bytes followed by n others, of which it
// has only the checksums. To put n bytes behind others multiplies their
// checksum by x^8n, in the field of the polynomials modulo Castagnoli's.
func joinCRC(before, behind uint32, n int) uint32 {
	shift, power := uint32(1)<<31, uint32(1)<<23 // x^0 and x^8
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(before, shift) ^ behind
}

// multiply multiplies two polynomials, whose highest bit is x^0.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		lowest := b & 1
		b >>= 1
		if lowest == 1 {
			b ^= crc32.Castagnoli
		}
	}
	return product
}
