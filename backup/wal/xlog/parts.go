package xlog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Parts are the contents of a record after its header. A Parts can be reused for many records.
type Parts struct {
	Blocks []Block
	Main   []byte // the resource manager's data; truncated if Cut
	Cut    bool   // the record is longer than its kept part
}

// Block is a page of a relation's fork that a record changes.
type Block struct {
	Relation
	Fork   uint8 // 0 = main
	Number uint32
}

// Relation locates a relation's files, like PostgreSQL's RelFileLocator.
type Relation struct{ Tablespace, Database, Number uint32 }

// Identifiers of a record's parts, and flags.
const (
	maxBlockID  = 32
	idMainShort = 255
	idMainLong  = 254
	idOrigin    = 253
	idTopLevel  = 252

	forkMask          = 0x0F
	blockHasImage     = 0x10
	blockSameRelation = 0x80

	imageHasHole    = 0x01
	imageCompressed = 0x04 | 0x08 | 0x10
)

// errRecord means that a record's parts do not match its length.
var errRecord = errors.New("a record's parts do not match its length")

// Read decodes r like PostgreSQL's DecodeXLogRecord.
func (p *Parts) Read(r *Record) error {
	p.Blocks, p.Main, p.Cut = p.Blocks[:0], nil, r.length > len(r.data)
	c := partCursor{in: r.data[recordHeader:], left: r.length - recordHeader}
	for c.left > c.body && !c.last {
		p.part(&c)
	}
	if c.bad || c.left != c.body {
		return fmt.Errorf("WAL at %v: %w", r.Start, errRecord)
	}
	if before := c.body - c.main; before < len(c.in) {
		p.Main = c.in[before:]
	}
	return nil
}

// partCursor iterates over the headers of a record's parts.
type partCursor struct {
	in   []byte // the kept bytes from here on
	left int    // bytes of the record from here on
	body int    // how many of them belong to the headers so far
	main int    // how many of those are main data, which comes last
	last bool
	bad  bool
}

// take returns the next n bytes, or zeros if there are fewer.
func (c *partCursor) take(n int) []byte {
	if n > len(c.in) || n > c.left-c.body {
		c.bad, c.last = true, true
		return make([]byte, 16)
	}
	taken := c.in[:n]
	c.in, c.left = c.in[n:], c.left-n
	return taken
}

func (c *partCursor) uint8() uint8   { return c.take(1)[0] }
func (c *partCursor) uint32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }

func (p *Parts) part(c *partCursor) {
	switch id := c.uint8(); {
	case id <= maxBlockID:
		p.block(c)
	case id == idMainShort:
		c.main, c.last = int(c.uint8()), true
		c.body += c.main
	case id == idMainLong:
		c.main, c.last = int(c.uint32()), true
		c.body += c.main
	case id == idOrigin:
		c.take(2)
	case id == idTopLevel:
		c.take(4)
	default:
		c.bad, c.last = true, true
	}
}

func (p *Parts) block(c *partCursor) {
	head := c.take(3)
	flags := head[0]
	c.body += int(binary.LittleEndian.Uint16(head[1:]))
	if flags&blockHasImage != 0 {
		c.body += imageLength(c)
	}
	b := Block{Fork: flags & forkMask}
	switch {
	case flags&blockSameRelation == 0:
		place := c.take(12)
		b.Tablespace, b.Database = binary.LittleEndian.Uint32(place), binary.LittleEndian.Uint32(place[4:])
		b.Relation.Number = binary.LittleEndian.Uint32(place[8:])
	case len(p.Blocks) == 0:
		c.bad, c.last = true, true
		return
	default:
		b.Relation = p.Blocks[len(p.Blocks)-1].Relation
	}
	b.Number = c.uint32()
	p.Blocks = append(p.Blocks, b)
}

// imageLength consumes the header of a full-page image, and returns the image's length.
func imageLength(c *partCursor) int {
	head := c.take(5) // length, offset of the hole, flags
	if head[4]&imageHasHole != 0 && head[4]&imageCompressed != 0 {
		c.take(2) // length of the hole
	}
	return int(binary.LittleEndian.Uint16(head))
}
