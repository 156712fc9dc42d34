package blobstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"holdfast/internal/durable"
)

// A blob's file ends with the CRC-32C of each of its blocks and a footer:
//
//	content
//	CRC-32C of each block of 256 KiB, 4 bytes each
//	"hfb1", size of a block (4), size of the content (8), CRC-32C of these (4)
//
// Numbers are little-endian.
const (
	blockSize    = 256 << 10
	footerMagic  = "hfb1"
	footerLength = 20
)

// blockSums computes the checksums of a blob's blocks and of its whole content during writing.
type blockSums struct {
	sums  []byte // of complete blocks
	total uint32 // of everything written
	crc   uint32 // of the incomplete block
	fill  int    // bytes in that block
}

// Write implements io.Writer.
func (b *blockSums) Write(p []byte) (int, error) {
	b.total = crc32.Update(b.total, castagnoli, p)
	b.add(p)
	return len(p), nil
}

// add is Write without the total.
func (b *blockSums) add(p []byte) {
	for len(p) > 0 {
		n := min(len(p), blockSize-b.fill)
		b.crc = crc32.Update(b.crc, castagnoli, p[:n])
		b.fill += n
		p = p[n:]
		if b.fill == blockSize {
			b.close()
		}
	}
}

func (b *blockSums) close() {
	b.sums = binary.LittleEndian.AppendUint32(b.sums, b.crc)
	b.crc, b.fill = 0, 0
}

// all returns the checksums of all blocks, the incomplete one included.
func (b *blockSums) all() []byte {
	if b.fill == 0 {
		return slices.Clip(b.sums)
	}
	return binary.LittleEndian.AppendUint32(slices.Clip(b.sums), b.crc)
}

// trailer returns the bytes that follow a content of size bytes.
func (b *blockSums) trailer(size int64) []byte { return append(b.all(), footer(size)...) }

func footer(size int64) []byte {
	f := make([]byte, footerLength)
	copy(f, footerMagic)
	binary.LittleEndian.PutUint32(f[4:], blockSize)
	binary.LittleEndian.PutUint64(f[8:], uint64(size))
	binary.LittleEndian.PutUint32(f[16:], crc32.Checksum(f[:16], castagnoli))
	return f
}

// Occupied returns the disk usage in bytes of the file of a blob with size bytes of content.
func Occupied(size int64) int64 { return durable.Occupied(fileSize(size)) }

// fileSize returns the size of the file for a content of size bytes.
func fileSize(size int64) int64 {
	return size + 4*((size+blockSize-1)/blockSize) + footerLength
}

// contentSize returns the size of the content of a file of the given size.
func contentSize(file int64) int64 {
	file -= footerLength
	blocks := (file + blockSize + 3) / (blockSize + 4)
	return max(0, file-4*blocks)
}

// checkFooter checks that the file ends with the footer for its size.
func checkFooter(r io.ReaderAt, fileSize int64) error {
	got, want := make([]byte, footerLength), footer(contentSize(fileSize))
	if fileSize < footerLength {
		return fmt.Errorf("end of blob: %w", ErrDamaged)
	}
	if _, err := r.ReadAt(got, fileSize-footerLength); err != nil && err != io.EOF {
		return fmt.Errorf("read end of blob: %w", err)
	}
	if string(got) != string(want) {
		return fmt.Errorf("end of blob: %w", ErrDamaged)
	}
	return nil
}

// verifyBlock verifies a block of a content of size bytes against its checksum.
func verifyBlock(r io.ReaderAt, size, number int64, block []byte) error {
	var sum [4]byte
	if _, err := r.ReadAt(sum[:], size+4*number); err != nil {
		return fmt.Errorf("read checksum of blob: %w", err)
	}
	if binary.LittleEndian.Uint32(sum[:]) != crc32.Checksum(block, castagnoli) {
		return fmt.Errorf("block %d of blob: %w", number, ErrDamaged)
	}
	return nil
}
