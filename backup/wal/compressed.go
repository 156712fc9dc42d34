package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"holdfast/backup/wal/xlog"
	"holdfast/internal/durable"
	"holdfast/internal/parallel"
)

// Suffixes of an archived segment's files.
const (
	compressedSuffix = ".zst"
	partialSuffix    = ".partial"
	summarySuffix    = ".summary"
)

const (
	segmentMagic  = "holdfwal"
	segmentFormat = 1
	segmentHeader = 48
	zstdFrames    = 1 // the only compression
	chunkHeader   = 8
	chunkSize     = 1 << 20 // bytes of WAL in a chunk
)

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged means that the content of a file is not as it was written.
var errDamaged = errors.New("the file is damaged")

// errGone means that a file was removed since it was listed.
var errGone = damagedf("the file is gone")

func damagedf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// codec compresses and decompresses chunks.
type codec struct {
	enc    *zstd.Encoder
	dec    *zstd.Decoder
	chunks sync.Pool // *chunkBuffers
}

// chunkBuffers are for one reader of a segment: a chunk as it is stored, and decompressed. The decoder holds on to the
// last buffer that it filled, so new ones would stay in memory too.
type chunkBuffers struct{ stored, raw []byte }

// sharedCodec is shared by all archives: its tables take megabytes, and each database has an archive.
var sharedCodec = sync.OnceValues(newCodec)

func newCodec() (*codec, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithWindowSize(chunkSize), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(parallel.Processors()))
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(256*chunkSize))
	if err != nil {
		return nil, fmt.Errorf("make decompressor: %w", err)
	}
	return &codec{enc: enc, dec: dec}, nil
}

// segmentInfo is the header of a compressed segment.
type segmentInfo struct {
	timeline uint32
	system   uint64
	start    xlog.LSN
	size     uint32
}

func (i segmentInfo) encode() []byte {
	h := make([]byte, segmentHeader)
	copy(h, segmentMagic)
	binary.LittleEndian.PutUint16(h[8:], segmentFormat)
	binary.LittleEndian.PutUint16(h[10:], zstdFrames)
	binary.LittleEndian.PutUint32(h[12:], i.timeline)
	binary.LittleEndian.PutUint64(h[16:], i.system)
	binary.LittleEndian.PutUint64(h[24:], uint64(i.start))
	binary.LittleEndian.PutUint32(h[32:], i.size)
	binary.LittleEndian.PutUint32(h[36:], chunkSize)
	binary.LittleEndian.PutUint32(h[44:], crc32.Checksum(h[:44], castagnoli))
	return h
}

// check compares a segment's header with the expected one.
func (i segmentInfo) check(head []byte) error {
	if bytes.Equal(head, i.encode()) {
		return nil
	}
	format := binary.LittleEndian.Uint16(head[8:])
	if string(head[:8]) == segmentMagic && format > segmentFormat && crc32.Checksum(head[:44], castagnoli) == binary.LittleEndian.Uint32(head[44:]) {
		return fmt.Errorf("it has format %d, and this program knows formats up to %d: use a newer holdfast", format, segmentFormat)
	}
	return damagedf("its header is damaged, or another segment's")
}

func chunkSum(n int, stored []byte) uint32 {
	var number [4]byte
	binary.LittleEndian.PutUint32(number[:], uint32(n))
	return crc32.Update(crc32.Checksum(number[:], castagnoli), castagnoli, stored)
}

// compress compresses info.size bytes of WAL from from into a segment file.
func (c *codec) compress(to durable.File, from io.ReaderAt, info segmentInfo) (stored int64, err error) {
	head := info.encode()
	if _, err := to.WriteAt(head, 0); err != nil {
		return 0, err
	}
	stored = segmentHeader
	raw, out := make([]byte, chunkSize), make([]byte, 0, chunkSize/2)
	for n := 0; n*chunkSize < int(info.size); n++ {
		if _, err := from.ReadAt(raw, int64(n)*chunkSize); err != nil {
			return 0, fmt.Errorf("read segment: %w", err)
		}
		out = c.enc.EncodeAll(raw, append(out[:0], make([]byte, chunkHeader)...))
		binary.LittleEndian.PutUint32(out, uint32(len(out)-chunkHeader))
		binary.LittleEndian.PutUint32(out[4:], chunkSum(n, out[chunkHeader:]))
		if _, err := to.WriteAt(out, stored); err != nil {
			return 0, err
		}
		stored += int64(len(out))
	}
	return stored, nil
}

// decompress reads and checks a compressed segment and calls each with its chunks, starting at number skip. A chunk
// is valid until each returns.
func (c *codec) decompress(f *os.File, want segmentInfo, skip int, each func([]byte) error) error {
	in := io.NewSectionReader(f, 0, 1<<40)
	head := make([]byte, segmentHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		return damagedf("it is too short")
	}
	if err := want.check(head); err != nil {
		return err
	}
	b, kept := c.chunks.Get().(*chunkBuffers)
	if !kept {
		b = &chunkBuffers{}
	}
	defer c.chunks.Put(b)
	var err error
	for n := 0; n*chunkSize < int(want.size); n++ {
		if b.stored, err = readChunk(in, n, b.stored); err != nil {
			return err
		}
		if n < skip {
			continue
		}
		if b.raw, err = c.dec.DecodeAll(b.stored, b.raw[:0]); err != nil || len(b.raw) != chunkSize {
			return damagedf("chunk %d: %d bytes, %v", n, len(b.raw), err)
		}
		if err := each(b.raw); err != nil {
			return err
		}
	}
	if n, _ := in.Read(head); n > 0 {
		return damagedf("it has data after its end")
	}
	return nil
}

func readChunk(in io.Reader, n int, buf []byte) ([]byte, error) {
	var head [chunkHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, damagedf("it ends before chunk %d", n)
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > 2*chunkSize {
		return nil, damagedf("chunk %d has %d bytes", n, size)
	}
	if cap(buf) < int(size) {
		buf = make([]byte, size, size+size/4)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return nil, damagedf("it ends in chunk %d", n)
	}
	if chunkSum(n, buf) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, damagedf("chunk %d (%d bytes of WAL each) has a wrong checksum", n, chunkSize)
	}
	return buf, nil
}
