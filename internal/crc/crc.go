// Package crc computes the checksum of joined byte sequences from the checksums of the pieces.
package crc

// The polynomials of checksums whose bits are reflected, and whose register starts as ones and ends inverted.
const (
	IEEE       uint32 = 0xedb88320
	Castagnoli uint32 = 0x82f63b78
	NVME       uint64 = 0x9a6c9329ac4bc9b5
)

// Combine returns the checksum of two joined byte sequences from their checksums first and second. n is the length of
// the second sequence.
func Combine[T uint32 | uint64](polynomial, first, second T, n int64) T {
	return CombineShifted(polynomial, first, second, Shift(polynomial, n))
}

// CombineShifted is Combine for a second sequence whose length has that Shift.
func CombineShifted[T uint32 | uint64](polynomial, first, second, shift T) T {
	return multiply(polynomial, first, shift) ^ second
}

// Zeros returns the checksum of n bytes of zeros.
func Zeros[T uint32 | uint64](polynomial T, n int64) T {
	// The n zeros shift the ones of the register, and the final inversion is undone.
	return ^multiply(polynomial, ^T(0), Shift(polynomial, n))
}

// Shift returns the polynomial x^(8n), the effect of n more bytes on a checksum.
func Shift[T uint32 | uint64](polynomial T, n int64) T {
	result, square := one[T](), one[T]()>>8 // 1, x^8
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = multiply(polynomial, result, square)
		}
		square = multiply(polynomial, square, square)
	}
	return result
}

// one returns the polynomial 1, which is the highest bit of a reflected one.
func one[T uint32 | uint64]() T { return ^(^T(0) >> 1) }

// multiply multiplies two polynomials modulo another one, as zlib's crc32_combine does.
func multiply[T uint32 | uint64](polynomial, a, b T) (product T) {
	for ; a != 0; a <<= 1 {
		if a&one[T]() != 0 {
			product ^= b
		}
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}
