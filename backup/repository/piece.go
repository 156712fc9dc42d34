package repository

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
)

// Piece is a range of consecutive chunks of a file, written to a Writer. One goroutine fills it, flushes it, and
// fills it again.
type Piece struct {
	w      *Writer
	reader *Reader

	pending []pendingChunk
	records []byte
	size    int64
	crc32c  uint32

	pages []byte
}

// pendingChunk is a chunk in a Piece.
type pendingChunk struct {
	ref   Ref   // if it is already stored
	entry entry // if it is not; Flush sets its pack and offset
	fresh bool
}

// NewPiece returns an empty Piece. The caller must close it.
func (w *Writer) NewPiece() (*Piece, error) {
	reader, err := w.r.NewReader()
	if err != nil {
		return nil, err
	}
	// A Piece reads chunks only as bases of overlays. A restore reads them again and compares their hashes; here
	// CRC-32C suffices, in a tenth of the time.
	reader.quick = true
	return &Piece{w: w, reader: reader}, nil
}

// Close discards everything that was not flushed.
func (p *Piece) Close() { p.reader.Close() }

// Reader returns the Piece's reader, for chunks of earlier backups.
func (p *Piece) Reader() *Reader { return p.reader }

// Add adds a chunk. base, unless zero, is the chunk at its position in the previous backup: if only a few pages
// differ, only these are stored.
func (p *Piece) Add(content []byte, base Ref) error {
	crc := crc32.Checksum(content, castagnoli)
	p.crc32c = CombineCRC32C(p.crc32c, crc, int64(len(content)))
	p.size += int64(len(content))
	if allZero(content) {
		p.pending = append(p.pending, pendingChunk{})
		return nil
	}
	next := pendingChunk{entry: entry{hash: hashOf(content), raw: uint32(len(content)), crc32c: crc}}
	var under entry
	if base != (Ref{}) {
		var err error
		if under, err = p.w.r.entry(base); err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
		if err != nil || !p.w.r.usable(base, under) {
			base, under = Ref{}, entry{} // store without a base
		}
		if under.hash == next.entry.hash {
			p.pending = append(p.pending, pendingChunk{ref: base})
			return nil
		}
	}
	if ref, ok := p.w.find(next.entry.hash); ok {
		p.pending = append(p.pending, pendingChunk{ref: ref})
		return nil
	}
	next.fresh = true
	if err := p.encode(&next.entry, content, base, under); err != nil {
		return err
	}
	p.pending = append(p.pending, next)
	return nil
}

// AddStored adds a stored chunk of size bytes. It returns ErrDamaged if the chunk is not usable.
func (p *Piece) AddStored(ref Ref, size int64) error {
	crc := ZerosCRC32C(size)
	if ref != (Ref{}) {
		e, err := p.w.r.entry(ref)
		if err != nil {
			return err
		}
		if !p.w.r.usable(ref, e) {
			return p.w.r.noteIndex(damaged(indexName(e.index), fmt.Sprintf("record %d, or its base, is damaged or missing", ref.Ordinal)))
		}
		if int64(e.raw) != size {
			return p.w.r.noteIndex(damaged(indexName(e.index), fmt.Sprintf("record %d has %d bytes where a file has %d", ref.Ordinal, e.raw, size)))
		}
		crc = e.crc32c
	}
	p.crc32c = CombineCRC32C(p.crc32c, crc, size)
	p.size += size
	p.pending = append(p.pending, pendingChunk{ref: ref})
	return nil
}

// encode appends the record of a chunk: an overlay if only a few pages differ
// from the base, otherwise the whole chunk.
func (p *Piece) encode(e *entry, content []byte, base Ref, under entry) error {
	start := len(p.records)
	if under.base != (Ref{}) {
		base = under.base
	}
	mask, overlay, err := p.overlay(content, base, under)
	if err != nil {
		return err
	}
	if overlay {
		e.base = base
		p.records = p.w.encoder.EncodeAll(p.pages, appendMask(p.records, mask))
	} else {
		p.records = p.w.encoder.EncodeAll(content, p.records)
	}
	e.stored = uint32(len(p.records) - start)
	return nil
}

// overlay sets p.pages to the pages of content that differ from the whole chunk base, and reports whether they are
// few. It does not use a damaged base.
func (p *Piece) overlay(content []byte, base Ref, under entry) (mask uint16, ok bool, err error) {
	if base == (Ref{}) || int(under.raw) != len(content) {
		return 0, false, nil
	}
	root, err := p.reader.whole(base)
	if errors.Is(err, ErrDamaged) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	mask, p.pages = appendOverlay(p.pages[:0], root, content)
	return mask, len(p.pages) <= maxOverlay*PageSize, nil
}

// Flushed describes the chunks of a flushed Piece.
type Flushed struct {
	Chunks Chunks
	Size   int64
	CRC32C uint32
}

// Flush stores the new chunks and empties the Piece.
func (p *Piece) Flush() (Flushed, error) {
	if err := p.w.append(p.pending, p.records); err != nil {
		return Flushed{}, err
	}
	done := Flushed{Size: p.size, CRC32C: p.crc32c}
	for _, next := range p.pending {
		done.Chunks = appendRef(done.Chunks, next.ref)
	}
	p.pending, p.records, p.size, p.crc32c = p.pending[:0], p.records[:0], 0, 0
	return done, nil
}

var zeros [ChunkSize]byte

func allZero(content []byte) bool { return bytes.Equal(content, zeros[:len(content)]) }
