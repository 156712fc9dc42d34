package crc

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/minio/crc64nvme"
)

// TestCombine compares with the checksum of the joined bytes, at every length of the second piece around a few sizes.
func TestCombine(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 1<<20+77)
	random.Read(b)
	for _, first := range []int{0, 1, 1000, 1 << 20, len(b)} {
		for _, n := range []int{0, 1, 2, 7, 8, 255, 4096, 5 << 10, 1 << 19} {
			all := b[:min(first+n, len(b))]
			a, z := all[:first], all[first:]
			check(t, Castagnoli, sum32(crc32.Castagnoli), a, z)
			check(t, IEEE, sum32(crc32.IEEE), a, z)
			check(t, NVME, crc64nvme.Checksum, a, z)
		}
	}
}

func sum32(polynomial uint32) func([]byte) uint32 {
	table := crc32.MakeTable(polynomial)
	return func(b []byte) uint32 { return crc32.Checksum(b, table) }
}

func check[T uint32 | uint64](t *testing.T, polynomial T, sum func([]byte) T, a, z []byte) {
	t.Helper()
	joined := append(append([]byte{}, a...), z...)
	if got, want := Combine(polynomial, sum(a), sum(z), int64(len(z))), sum(joined); got != want {
		t.Errorf("%x: %d and %d bytes have %x, not %x", polynomial, len(a), len(z), got, want)
	}
	if got, want := Zeros(polynomial, int64(len(z))), sum(make([]byte, len(z))); got != want {
		t.Errorf("%x: %d zeros have %x, not %x", polynomial, len(z), got, want)
	}
}
