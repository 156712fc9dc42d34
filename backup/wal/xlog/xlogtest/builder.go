// Package xlogtest makes WAL for tests, without a server.
package xlogtest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"holdfast/backup/wal/xlog"
)

// SegmentSize is the size of a Builder's segments.
const SegmentSize = 1 << 20

// System is the system identifier in a Builder's WAL.
const System = 77

// Builder writes WAL of PostgreSQL 18 on timeline 1: records, and the page headers they need.
type Builder struct {
	bytes.Buffer
	Start xlog.LSN // where the WAL begins
	Prev  xlog.LSN // start of the last record
}

// Sizes and flags of PostgreSQL's page and record headers.
const (
	pageMagic    = 0xD118
	shortHeader  = 24
	longHeader   = 40
	recordHeader = 24

	firstIsContinued = 0x01 // XLP_FIRST_IS_CONTRECORD
	hasLongHeader    = 0x02 // XLP_LONG_HEADER

	idMainShort = 255
	idMainLong  = 254
)

// InfoSwitch is the Info of an XLOG record that switches to the next segment.
const InfoSwitch = 0x40

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Pos returns the end of the WAL written so far.
func (b *Builder) Pos() xlog.LSN { return b.Start + xlog.LSN(b.Len()) }

// page begins a page that continues rest bytes of a record.
func (b *Builder) page(rest int) {
	h := make([]byte, shortHeader, longHeader)
	binary.LittleEndian.PutUint16(h, pageMagic)
	if rest > 0 {
		h[2] |= firstIsContinued
	}
	binary.LittleEndian.PutUint32(h[4:], 1)
	binary.LittleEndian.PutUint64(h[8:], uint64(b.Pos()))
	binary.LittleEndian.PutUint32(h[16:], uint32(rest))
	if b.Pos()%SegmentSize == 0 {
		h[2] |= hasLongHeader
		h = binary.LittleEndian.AppendUint64(h, System)
		h = binary.LittleEndian.AppendUint32(h, SegmentSize)
		h = binary.LittleEndian.AppendUint32(h, xlog.PageSize)
	}
	b.Write(h)
}

func (b *Builder) write(data []byte) {
	for len(data) > 0 {
		if b.Pos()%xlog.PageSize == 0 {
			b.page(len(data))
		}
		n := min(len(data), xlog.PageSize-int(b.Pos()%xlog.PageSize))
		b.Write(data[:n])
		data = data[n:]
	}
}

// Record writes a record. body is its content after the header.
func (b *Builder) Record(resource, info uint8, body []byte) {
	if b.Pos()%xlog.PageSize == 0 {
		b.page(0)
	}
	at := b.Pos()
	r := make([]byte, recordHeader, recordHeader+len(body))
	binary.LittleEndian.PutUint32(r, uint32(recordHeader+len(body)))
	binary.LittleEndian.PutUint64(r[8:], uint64(b.Prev))
	r[16], r[17] = info, resource
	crc := crc32.Update(crc32.Checksum(body, castagnoli), castagnoli, r[:20])
	binary.LittleEndian.PutUint32(r[20:], crc)
	b.write(append(r, body...))
	for b.Pos()%8 != 0 {
		b.WriteByte(0)
	}
	b.Prev = at
}

// Commit writes the commit of a transaction. The time is in PostgreSQL's microseconds.
func (b *Builder) Commit(micros int64) {
	body := binary.LittleEndian.AppendUint64([]byte{idMainShort, 8}, uint64(micros))
	b.Record(xlog.ResourceXact, 0, body)
}

// MainData returns data encoded as the main data of a record.
func MainData(data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{idMainLong}, uint32(len(data))), data...)
}
