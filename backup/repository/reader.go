package repository

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// Reader reads chunks. It is not safe for concurrent use.
type Reader struct {
	r       *Repository
	quick   bool // compares only CRC-32C; see Writer.NewPiece
	decoder *zstd.Decoder
	packs   map[packKey]*openPack
	root    []byte // the last base chunk read
	rootOf  Ref
	pages   []byte
	content []byte // a chunk that is not kept, of Each and of a verification
}

type packKey struct{ index, number uint32 }

const (
	// maxOpenPacks is the number of packs that a Reader keeps open.
	maxOpenPacks = 16
	// readAhead is the size of a read from a pack, larger than any record.
	readAhead = 256 << 10
)

// NewReader returns a Reader. The caller must close it.
func (r *Repository) NewReader() (*Reader, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(1<<20))
	if err != nil {
		return nil, fmt.Errorf("read chunks: %w", err)
	}
	return &Reader{
		r: r, decoder: decoder, packs: map[packKey]*openPack{},
		root: make([]byte, 0, ChunkSize), pages: make([]byte, 0, ChunkSize), content: make([]byte, 0, ChunkSize),
	}, nil
}

// Close closes the Reader.
func (rd *Reader) Close() {
	rd.decoder.Close()
	for key := range rd.packs {
		rd.closePack(key)
	}
}

// Each calls visit with the verified content of each chunk in order, or nil for a chunk of zeros. The content is
// valid until visit returns.
func (rd *Reader) Each(chunks Chunks, visit func(content []byte) error) error {
	return rd.r.eachEntry(chunks, func(ref Ref, e entry) error {
		if ref == (Ref{}) {
			return visit(nil)
		}
		b, err := rd.chunk(ref, e, rd.content)
		if err != nil {
			return err
		}
		return visit(b)
	})
}

// Chunk reads one chunk into dst, which must have the capacity of a whole chunk. It caches the whole chunk that it
// reads, the base of an overlay or the chunk itself, for a caller that is about to write an overlay on it.
func (rd *Reader) Chunk(ref Ref, dst []byte) ([]byte, error) {
	e, err := rd.r.entry(ref)
	if err != nil {
		return nil, err
	}
	if e.base != (Ref{}) {
		return rd.chunk(ref, e, dst)
	}
	root, err := rd.whole(ref)
	return append(dst[:0], root...), err
}

// chunk reads the record of an entry, and records damage.
func (rd *Reader) chunk(ref Ref, e entry, dst []byte) ([]byte, error) {
	b, err := rd.find(ref, e, dst)
	if errors.Is(err, ErrDamaged) {
		rd.r.distrust(ref)
	}
	return b, err
}

// find reads a record at its current position: if its pack is gone, the record was moved.
func (rd *Reader) find(ref Ref, e entry, dst []byte) ([]byte, error) {
	b, err := rd.decode(e, dst)
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	rd.r.forgetIndex(e.index)
	moved, err := rd.r.entry(ref)
	if err != nil {
		return nil, err
	}
	if moved.index == e.index && moved.pack == e.pack {
		return nil, damaged(packName(e.index, e.pack), "it is missing, and a backup needs it")
	}
	return rd.decode(moved, dst)
}

func (rd *Reader) decode(e entry, dst []byte) ([]byte, error) {
	record, err := rd.record(e)
	if err != nil {
		return nil, err
	}
	b, err := rd.unpack(e, record, dst)
	if err == nil && (len(b) != int(e.raw) || !rd.matches(b, e)) {
		err = rd.damagedRecord(e, "its content has another hash than was stored")
	}
	return b, err
}

// matches compares a chunk's content with the checksum in its entry.
func (rd *Reader) matches(content []byte, e entry) bool {
	if rd.quick {
		return crc32.Checksum(content, castagnoli) == e.crc32c
	}
	return hashOf(content) == e.hash
}

func (rd *Reader) damagedRecord(e entry, what string) error {
	return damaged(packName(e.index, e.pack), fmt.Sprintf("the record at byte %d: %s", e.offset, what))
}

// unpack restores a chunk from its record.
func (rd *Reader) unpack(e entry, record, dst []byte) ([]byte, error) {
	if e.base == (Ref{}) {
		b, err := rd.decoder.DecodeAll(record, dst[:0:ChunkSize])
		if err != nil {
			return nil, rd.damagedRecord(e, err.Error())
		}
		return b, nil
	}
	if len(record) < maskSize {
		return nil, rd.damagedRecord(e, "it is too short")
	}
	pages, err := rd.decoder.DecodeAll(record[maskSize:], rd.pages[:0:ChunkSize])
	if err != nil {
		return nil, rd.damagedRecord(e, err.Error())
	}
	mask := binary.LittleEndian.Uint16(record)
	root, err := rd.whole(e.base)
	if err != nil {
		return nil, err
	}
	b := append(dst[:0], root...)
	if !applyOverlay(b, mask, pages) {
		return nil, rd.damagedRecord(e, "its pages do not fit")
	}
	return b, nil
}

// whole returns the base chunk of an overlay. It is valid until the next call.
func (rd *Reader) whole(ref Ref) ([]byte, error) {
	if ref == rd.rootOf {
		return rd.root, nil
	}
	e, err := rd.r.entry(ref)
	if err != nil {
		return nil, err
	}
	if e.base != (Ref{}) {
		return nil, damaged(indexName(e.index), fmt.Sprintf("record %d is an overlay under an overlay", ref.Ordinal))
	}
	rd.rootOf = Ref{}
	root, err := rd.chunk(ref, e, rd.root)
	if err != nil {
		return nil, err
	}
	rd.root, rd.rootOf = root, ref
	return root, nil
}

// openPack is an open pack and the part of it in memory. Records are mostly read in order.
type openPack struct {
	f      *stored
	offset int64
	bytes  []byte
	buf    []byte
}

// record returns a record as it is stored in its pack.
func (rd *Reader) record(e entry) ([]byte, error) {
	p, err := rd.pack(packKey{e.index, e.pack})
	if err != nil {
		return nil, err
	}
	from, to := int64(e.offset), int64(e.offset)+int64(e.stored)
	if from < p.offset || to > p.offset+int64(len(p.bytes)) {
		err = p.load(from)
	}
	if to > p.offset+int64(len(p.bytes)) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", packName(e.index, e.pack), err)
		}
		return nil, damaged(packName(e.index, e.pack), fmt.Sprintf("it ends before the record at byte %d does", from))
	}
	return p.bytes[from-p.offset : to-p.offset], nil
}

// load reads ahead from a position in the pack.
func (p *openPack) load(from int64) error {
	n, err := p.f.ReadAt(p.buf, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	p.offset, p.bytes = from, p.buf[:n]
	return err
}

// pack returns an open pack.
func (rd *Reader) pack(key packKey) (*openPack, error) {
	if p := rd.packs[key]; p != nil {
		return p, nil
	}
	for other := range rd.packs {
		if len(rd.packs) < maxOpenPacks {
			break
		}
		rd.closePack(other)
	}
	f, err := rd.r.openStored(packName(key.index, key.number))
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	rd.packs[key] = &openPack{f: f, buf: make([]byte, readAhead)}
	return rd.packs[key], nil
}

func (rd *Reader) closePack(key packKey) {
	rd.packs[key].f.Close()
	delete(rd.packs, key)
}
