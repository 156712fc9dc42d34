package blobstore

import (
	"crypto/rand"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

// TestTotal writes in pieces of any size and compares the checksum of all with
// what the library computes at once.
func TestTotal(t *testing.T) {
	t.Parallel()
	content := make([]byte, 5*blockSize+1)
	rand.Read(content)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, len(content)), rapid.SampledFrom([]int{0, 1, blockSize - 1, blockSize, blockSize + 1, 4 * blockSize})).Draw(t, "size")
		var sums blockSums
		for rest := content[:size]; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			sums.write(rest[:n])
			rest = rest[n:]
		}
		want := crc32.Checksum(content[:size], castagnoli)
		if got := sums.total(); got != want {
			t.Fatalf("%d bytes have %08x, not %08x", size, got, want)
		}
		sums.trailer(int64(size))
		if got := sums.total(); got != want {
			t.Fatalf("%d bytes have %08x after the trailer, not %08x", size, got, want)
		}
	})
}
