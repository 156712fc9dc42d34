package xlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Scanner finds the records in a stream of WAL and checks them: each page's magic number, address, timeline and
// system, the continuation of records across pages, and each record's xl_prev and CRC-32C. It takes the stream in
// pieces of any size:
//
//	s.Feed(piece)
//	for s.Next() {
//		use(s.Record())
//	}
//	if err := s.Err(); err != nil { … }
//
// A Scanner allocates nothing for a record within one page and piece; it assembles other records in a reused buffer.
type Scanner struct {
	config ScannerConfig
	in     []byte // fed and not yet consumed
	pos    LSN    // of in[0]
	err    error

	lost bool // the record that continues on the first page is unknown
	fill LSN  // bytes before it are ignored: padding, or the rest after a switch
	end  LSN  // end of the last complete record
	prev LSN  // start of the last complete record; 0 = unknown

	head    [longHeader]byte // a page header being assembled
	headLen int

	start LSN    // start of the record being assembled
	got   int    // its bytes so far; 0 = no such record
	total int    // its length, once its first 4 bytes are there
	crc   uint32 // of the bytes after its header
	kept  []byte // its first maxKept bytes

	record Record
}

// ScannerConfig is the expected identity of the WAL.
type ScannerConfig struct {
	SegmentSize uint64 // in bytes
	Timeline    uint32
	History     History // of Timeline
	System      uint64  // system identifier; 0 = accept the first one found
	Magic       uint16  // page magic; 0 = any known PostgreSQL version
}

const (
	PageSize    = 8192 // XLOG_BLCKSZ
	shortHeader = 24   // of a page
	longHeader  = 40   // of a segment's first page

	recordHeader = 24
	// maxRecord is PostgreSQL's XLogRecordMaxSize; in theory, version 15 allows slightly more.
	maxRecord = 1 << 30
	// maxKept bounds the memory for one record: a message of pg_logical_emit_message, which any tenant can call, may
	// have 1 GB. All of it is checked.
	maxKept = 1 << 20
)

// Page flags, xlp_info.
const (
	firstIsContinued   = 0x01 // XLP_FIRST_IS_CONTRECORD
	hasLongHeader      = 0x02 // XLP_LONG_HEADER
	firstIsOverwritten = 0x08 // XLP_FIRST_IS_OVERWRITE_CONTRECORD
)

// majorOf returns the major version that writes the page magic number
// (XLOG_PAGE_MAGIC).
func majorOf(magic uint16) (major int, known bool) {
	switch magic {
	case 0xD110:
		return 15, true
	case 0xD113:
		return 16, true
	case 0xD116:
		return 17, true
	case 0xD118:
		return 18, true
	}
	return 0, false
}

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errZero means that a record has length 0, as at the end of WAL that is followed by zeros.
var errZero = errors.New("there is no record: its length is 0")

// PageError means that the WAL at a position is invalid.
type PageError struct {
	At  LSN
	Err error
}

func (e *PageError) Error() string { return fmt.Sprintf("WAL at %v: %v", e.At, e.Err) }

func (e *PageError) Unwrap() error { return e.Err }

// NewScanner returns a Scanner for the stream that begins at start, the start of a page or of a record. At the start
// of a page, it skips the rest of a record from an earlier page.
func NewScanner(config ScannerConfig, start LSN) *Scanner {
	return &Scanner{config: config, pos: start, end: start, lost: true}
}

// Feed gives the scanner the next piece of the stream. The previous piece must be consumed, that is, Next returned
// false. The piece must not change until it is consumed.
func (s *Scanner) Feed(piece []byte) {
	if len(s.in) > 0 && s.err == nil {
		s.err = errors.New("a piece of WAL was fed before the last was consumed")
	}
	s.in = piece
}

// Each feeds the scanner a piece and calls visit with each complete record. The caller must check Err.
func (s *Scanner) Each(piece []byte, visit func(*Record)) {
	s.Feed(piece)
	for s.Next() {
		visit(s.Record())
	}
}

// Record returns the record that Next found, valid until Next is called again.
func (s *Scanner) Record() *Record { return &s.record }

// Err returns the *PageError that stopped the scan, or nil.
func (s *Scanner) Err() error { return s.err }

// End returns the end of the last complete record.
func (s *Scanner) End() LSN { return s.end }

// Position returns the position up to which the stream is consumed.
func (s *Scanner) Position() LSN { return s.pos }

// System returns the expected or found system identifier.
func (s *Scanner) System() uint64 { return s.config.System }

// Major returns the major version that wrote the WAL; 0 = not known yet.
func (s *Scanner) Major() int { major, _ := majorOf(s.config.Magic); return major }

// Next advances to the next complete record. It returns false if the piece is
// consumed or the scan cannot continue (Err).
func (s *Scanner) Next() bool {
	for s.err == nil && len(s.in) > 0 {
		switch {
		case s.pos < s.fill:
			s.skip(int(min(s.fill-s.pos, LSN(len(s.in)))))
		case s.pos%PageSize == 0 || s.headLen > 0:
			s.pageHeader()
		case s.got > 0 || !s.wholeHere():
			if s.takePart() {
				return true
			}
		default:
			if s.takeWhole() {
				return true
			}
		}
	}
	return false
}

func (s *Scanner) skip(n int) {
	s.in = s.in[n:]
	s.pos += LSN(n)
}

func (s *Scanner) fail(at LSN, err error) bool {
	s.err = &PageError{At: at, Err: err}
	return false
}

func (s *Scanner) failf(at LSN, format string, args ...any) bool {
	return s.fail(at, fmt.Errorf(format, args...))
}

// left returns the number of bytes left in the page.
func (s *Scanner) left() int { return PageSize - int(s.pos%PageSize) }

// wholeHere reports whether the record that starts here ends in this page and piece.
func (s *Scanner) wholeHere() bool {
	if len(s.in) < recordHeader || s.left() < recordHeader {
		return false
	}
	total := binary.LittleEndian.Uint32(s.in)
	return total >= recordHeader && int64(total) <= int64(min(len(s.in), s.left()))
}

func (s *Scanner) takeWhole() bool {
	total := int(binary.LittleEndian.Uint32(s.in))
	data := s.in[:total:total]
	s.start, s.total = s.pos, total
	if !s.checkHeader(data) || !s.checkSum(data, crc32.Update(0, castagnoli, data[recordHeader:])) {
		return false
	}
	s.skip(total)
	s.found(data)
	return true
}

// takePart consumes a part of a record that spans pages or pieces, and reports
// whether the record is complete.
func (s *Scanner) takePart() bool {
	if s.got == 0 {
		s.start, s.total, s.crc, s.kept = s.pos, 4, 0, s.kept[:0]
	}
	want := s.total
	if s.got < recordHeader && want > recordHeader {
		want = recordHeader
	}
	n := min(len(s.in), s.left(), want-s.got)
	s.keep(s.in[:n])
	s.skip(n)
	switch s.got {
	case 4:
		return s.takeLength()
	case recordHeader:
		if !s.checkHeader(s.kept) {
			return false
		}
	}
	if s.got < s.total || s.got < recordHeader {
		return false
	}
	if !s.checkSum(s.kept, s.crc) {
		return false
	}
	s.got = 0
	s.found(s.kept)
	return true
}

func (s *Scanner) keep(part []byte) {
	if s.got >= recordHeader {
		s.crc = crc32.Update(s.crc, castagnoli, part)
	}
	s.kept = append(s.kept, part[:min(len(part), maxKept-len(s.kept))]...)
	s.got += len(part)
}

func (s *Scanner) takeLength() bool {
	total := binary.LittleEndian.Uint32(s.kept)
	switch {
	case total == 0:
		return s.fail(s.start, errZero)
	case total < recordHeader || total > maxRecord:
		return s.failf(s.start, "a record's length is %d", total)
	}
	s.total = int(total)
	return false
}

// checkHeader is the equivalent of PostgreSQL's ValidXLogRecordHeader.
func (s *Scanner) checkHeader(data []byte) bool {
	prev := LSN(binary.LittleEndian.Uint64(data[8:]))
	switch {
	case s.prev != 0 && prev != s.prev, s.prev == 0 && prev >= s.start:
		return s.failf(s.start, "a record's link to the one before is %v, not %v", prev, s.prev)
	case data[17] > lastResource && data[17] < firstCustomResource:
		return s.failf(s.start, "a record's resource manager is %d", data[17])
	}
	return true
}

// checkSum is the equivalent of PostgreSQL's ValidXLogRecord: the CRC covers the header last.
func (s *Scanner) checkSum(data []byte, crc uint32) bool {
	crc = crc32.Update(crc, castagnoli, data[:20])
	if want := binary.LittleEndian.Uint32(data[20:]); crc != want {
		return s.failf(s.start, "a record's CRC-32C is %08x, not %08x", crc, want)
	}
	return true
}

// found makes data, a whole record or its first maxKept bytes, the current record.
func (s *Scanner) found(data []byte) {
	r := &s.record
	r.Start, r.End = s.start, align8(s.pos)
	r.XID = binary.LittleEndian.Uint32(data[4:])
	r.Info, r.Resource = data[16], data[17]
	r.data, r.length = data, s.total
	if r.Resource == ResourceXLOG && r.Info&infoMask == xlogSwitch {
		size := LSN(s.config.SegmentSize)
		r.End = (r.End + size - 1) &^ (size - 1)
	}
	s.prev, s.end, s.fill, s.lost = r.Start, r.End, r.End, false
}
