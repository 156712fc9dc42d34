package stream

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"
)

const (
	blockMagic = "HFCB"
	blockHead  = 16
	// maxBlock is the size at which a block ends, encoded. MaxInline is the largest
	// content that is part of a catalog.
	maxBlock  = 1 << 20
	MaxInline = 256 << 10
	// maxBlockPlain is the largest block: one entry may go beyond maxBlock.
	maxBlockPlain = maxBlock + MaxInline + 4*maxName
	// maxEntries bounds the entries of a checkpoint that is read.
	maxEntries = 16 << 20
)

// Entry is one part of the state in a checkpoint: a file in the store or, if Ref is
// zero, a few bytes.
type Entry struct {
	Owner, Kind, Name string
	Ref               Reference
	Data              []byte
}

func compareEntries(a, b Entry) int {
	return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

func (e Entry) append(b []byte) []byte {
	b = appendBytes(appendBytes(appendBytes(b, e.Owner), e.Kind), e.Name)
	if e.Ref.IsZero() {
		return appendBytes(append(b, 0), e.Data)
	}
	return e.Ref.append(append(b, 1))
}

func (d *decoder) entry() Entry {
	e := Entry{Owner: d.string("an owner"), Kind: d.string("a kind"), Name: d.string("a name")}
	switch d.byte("an entry") {
	case 0:
		e.Data = bytes.Clone(d.bytes("an entry", MaxInline))
	case 1:
		e.Ref = d.reference()
	default:
		d.fail("an entry")
	}
	return e
}

// endsBlock reports whether a block ends with an entry. It depends on the name alone,
// so that a change of the state changes few blocks: the ends of the others stay.
func (e Entry) endsBlock() bool {
	h := fnv.New64a()
	for _, s := range []string{e.Owner, e.Kind, e.Name} {
		_, _ = h.Write(append([]byte(s), 0))
	}
	sum := h.Sum64()
	return (sum^sum>>32)%1024 == 0
}

// blocks divides entries, which it sorts, into encoded blocks.
func blocks(entries []Entry) (all [][]byte) {
	slices.SortFunc(entries, compareEntries)
	var block []byte
	n := uint32(0)
	for i, e := range entries {
		if block == nil {
			block = append(appendMagic(nil, blockMagic), make([]byte, blockHead-8)...)
		}
		block = e.append(block)
		n++
		if i == len(entries)-1 || e.endsBlock() || len(block) >= maxBlock {
			binary.LittleEndian.PutUint32(block[8:], n)
			binary.LittleEndian.PutUint32(block[12:], uint32(len(block)-blockHead))
			all, block, n = append(all, block), nil, 0
		}
	}
	return all
}

// compressBlock returns an encoded block as it is stored.
func (c *compressor) compressBlock(block []byte) []byte {
	return c.compress(slices.Clone(block[:blockHead]), block[blockHead:])
}

// decodeBlock reads what compressBlock returned, and returns the block too.
func decodeBlock(c *compressor, b []byte) (entries []Entry, block []byte, err error) {
	d := &decoder{b: b}
	d.magic(blockMagic)
	n, size := d.uint32("a count"), int(d.uint32("a size"))
	// An entry has five bytes at least.
	if d.err == nil && (size > maxBlockPlain || int(n) > size/5) {
		d.fail("the header of a block")
	}
	if d.err != nil {
		return nil, nil, d.err
	}
	plain, err := c.expand(d.b, size)
	if err != nil {
		return nil, nil, err
	}
	inner := &decoder{b: plain}
	for range n {
		entries = append(entries, inner.entry())
		if inner.err != nil {
			return nil, nil, inner.err
		}
	}
	if !slices.IsSortedFunc(entries, compareEntries) {
		inner.fail("the order of a block")
	}
	return entries, slices.Concat(b[:blockHead], plain), inner.end("a block")
}
