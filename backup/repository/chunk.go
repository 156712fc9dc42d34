package repository

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Ref identifies a record permanently, wherever it is stored, by the session that wrote it and its number in the
// session. The zero Ref is a chunk of zeros, which is not stored.
type Ref struct{ Session, Ordinal uint32 }

// Run is Count chunks that are consecutive both in a file and in their session or, with Session 0, Count chunks of
// zeros.
type Run struct{ Session, First, Count uint32 }

// appendRef appends one chunk to runs.
func appendRef(runs []Run, ref Ref) []Run {
	return appendRun(runs, Run{ref.Session, ref.Ordinal, 1})
}

func appendRun(runs []Run, next Run) []Run {
	if len(runs) > 0 {
		last := &runs[len(runs)-1]
		if last.Session == next.Session && (next.Session == 0 || last.First+last.Count == next.First) {
			last.Count += next.Count
			return runs
		}
	}
	return append(runs, next)
}

// Chunks is the content of a file as runs of chunks.
type Chunks []Run

// Append returns the chunks of c followed by those of more.
func (c Chunks) Append(more Chunks) Chunks {
	for _, run := range more {
		c = appendRun(c, run)
	}
	return c
}

// Len returns the number of chunks.
func (c Chunks) Len() (n int64) {
	for _, run := range c {
		n += int64(run.Count)
	}
	return n
}

// Slice returns at most count chunks, starting at chunk number from.
func (c Chunks) Slice(from, count int64) (part Chunks) {
	for _, run := range c {
		n := int64(run.Count)
		if from >= n {
			from -= n
			continue
		}
		take := min(n-from, count)
		if take <= 0 {
			break
		}
		next := Run{run.Session, run.First + uint32(from), uint32(take)}
		if run.Session == 0 {
			next.First = 0
		}
		part = append(part, next)
		count -= take
		from = 0
	}
	return part
}

// Refs calls visit for each chunk.
func (c Chunks) Refs(visit func(Ref) error) error {
	for _, run := range c {
		for i := range run.Count {
			ref := Ref{run.Session, run.First + i}
			if run.Session == 0 {
				ref = Ref{}
			}
			if err := visit(ref); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunksIn returns the number of chunks in size bytes.
func chunksIn(size int64) int64 { return (size + ChunkSize - 1) / ChunkSize }

// entry describes a record in an index.
type entry struct {
	hash   Hash
	index  uint32 // the number of the index, which is not stored
	pack   uint32
	offset uint32 // in the pack
	stored uint32 // bytes there
	raw    uint32 // bytes of the chunk
	base   Ref    // base chunk of an overlay
	crc32c uint32 // of the chunk
}

const entrySize = 64

func (e *entry) append(b []byte) []byte {
	start := len(b)
	b = append(b, e.hash[:]...)
	for _, n := range []uint32{e.pack, e.offset, e.stored, e.raw, e.base.Session, e.base.Ordinal, e.crc32c} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

// parseEntry decodes an entry of the index file name, whose number is index.
func parseEntry(name string, index uint32, b []byte) (e entry, err error) {
	field := func(n int) uint32 { return binary.LittleEndian.Uint32(b[digestSize+4*n:]) }
	if crc32.Checksum(b[:entrySize-4], castagnoli) != field(7) {
		return e, damaged(name, "the checksum of an entry is wrong")
	}
	copy(e.hash[:], b)
	e.index = index
	e.pack, e.offset, e.stored, e.raw = field(0), field(1), field(2), field(3)
	e.base, e.crc32c = Ref{field(4), field(5)}, field(6)
	if e.raw == 0 || e.raw > ChunkSize || e.stored == 0 || e.stored > maxStored {
		return e, damaged(name, fmt.Sprintf("it has a chunk of %d bytes, stored in %d", e.raw, e.stored))
	}
	return e, nil
}

// maxStored exceeds what zstd produces for an incompressible chunk.
const maxStored = ChunkSize + 4096
