package blobstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"holdfast/internal/crc"
	"holdfast/internal/ctxio"
	"holdfast/internal/durable"
)

// Section is a piece of a Part's content: its size in bytes and its CRC-32C, as Sync returned them.
type Section struct {
	Size   int64
	CRC32C uint32
	// Blocks are the CRC-32Cs of its blocks, 4 bytes each, as Part.Blocks returned them; nil if they are not known.
	Blocks []byte
}

// FinishPart returns a Writer with the content of a Part: its sections, one after the other. Publishing it removes the
// Part. FinishPart reads the content once, and writes it to copyTo unless that is nil. If the bytes differ from what was
// written, it returns ErrDamaged. With copyTo nil it reads nothing where the checksums of all blocks are known from the
// sections: they were durable when Sync returned, as those of any other blob. Any failure leaves the sections as they are.
func (s *Store) FinishPart(ctx context.Context, id string, sections []Section, copyTo io.Writer) (*Writer, error) {
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("finish part: %w", err)
	}
	defer s.life.RUnlock()
	var size int64
	for _, section := range sections {
		size += section.Size
	}
	f, err := s.reopenPart(id, size)
	if err != nil {
		return nil, err
	}
	w := &Writer{ctx: ctx, store: s, id: newID(), temp: s.partPath(id), large: true, part: id, file: f, size: size}
	err = s.fs.Truncate(w.temp, size) // an earlier attempt to finish the Part may have left more
	if err == nil && (copyTo != nil || !w.sums.join(sections)) {
		err = w.readBack(sections, copyTo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("finish part: %w", err), f.Close())
	}
	return w, nil
}

// readBack verifies the sections and computes the checksums of the file's content.
func (w *Writer) readBack(sections []Section, copyTo io.Writer) error {
	f, err := os.Open(w.temp)
	if err != nil {
		return fmt.Errorf("read part: %w", err)
	}
	defer f.Close()
	buf := blocks.Get().(*durable.Buffer)
	defer blocks.Put(buf)
	w.sums = blockSums{}
	to := io.MultiWriter(&w.sums, cmp.Or(copyTo, io.Discard))
	start := int64(0)
	for _, section := range sections {
		if _, err := io.CopyBuffer(to, ctxio.NewReader(w.ctx, newPartReader(f, start, section)), buf.Bytes); err != nil {
			return err
		}
		start += section.Size
	}
	return nil
}

// join sets the checksums to those of sections, one after the other, and reports whether they are known and agree with
// each other.
func (b *blockSums) join(sections []Section) bool {
	var joined blockSums
	for n, s := range sections {
		if !s.isKnown() || n < len(sections)-1 && s.Size%blockSize != 0 {
			return false
		}
		joined.sums = append(joined.sums, s.Blocks...)
		joined.total = crc.Combine(crc.Castagnoli, joined.total, s.CRC32C, s.Size)
	}
	*b = joined
	return true
}

// isKnown reports whether the checksums of the section's blocks are known: those that give the section's.
func (s Section) isKnown() bool {
	if int64(len(s.Blocks)) != 4*((s.Size+blockSize-1)/blockSize) {
		return false
	}
	sum, shift, left := uint32(0), blockShift, s.Size
	for block := range slices.Chunk(s.Blocks, 4) {
		if left < blockSize {
			shift = crc.Shift(crc.Castagnoli, left)
		}
		sum = crc.CombineShifted(crc.Castagnoli, sum, binary.LittleEndian.Uint32(block), shift)
		left -= blockSize
	}
	return sum == s.CRC32C
}

// blockShift is the effect of a whole block on a checksum.
var blockShift = crc.Shift(crc.Castagnoli, blockSize)
