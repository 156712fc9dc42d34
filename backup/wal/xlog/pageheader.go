package xlog

import "encoding/binary"

// pageHeader consumes a page header, and checks it against the record that continues on the page, like PostgreSQL's
// XLogReaderValidatePageHeader.
func (s *Scanner) pageHeader() {
	at := s.pos - LSN(s.headLen)
	size := shortHeader
	if uint64(at)%s.config.SegmentSize == 0 {
		size = longHeader
	}
	n := copy(s.head[s.headLen:size], s.in)
	s.headLen += n
	s.skip(n)
	if s.headLen < size {
		return
	}
	s.headLen = 0
	if !s.checkPage(at, s.head[:size]) {
		return
	}
	s.continued(at, binary.LittleEndian.Uint16(s.head[2:]), int(binary.LittleEndian.Uint32(s.head[16:])))
}

func (s *Scanner) checkPage(at LSN, h []byte) bool {
	magic, info := binary.LittleEndian.Uint16(h), binary.LittleEndian.Uint16(h[2:])
	timeline, address := binary.LittleEndian.Uint32(h[4:]), LSN(binary.LittleEndian.Uint64(h[8:]))
	if _, known := majorOf(magic); !known || s.config.Magic != 0 && magic != s.config.Magic {
		return s.failf(at, "a page's magic number is %04X", magic)
	}
	if address != at {
		return s.failf(at, "a page's address is %v", address)
	}
	if (len(h) == longHeader) != (info&hasLongHeader != 0) {
		return s.failf(at, "a page's flags are %04X", info)
	}
	if want := s.config.History.at(at, s.config.Timeline); timeline != want {
		return s.failf(at, "a page's timeline is %d, not %d", timeline, want)
	}
	if len(h) == longHeader && !s.checkSegment(at, h) {
		return false
	}
	s.config.Magic = magic
	return true
}

// checkSegment checks the fields that only a segment's first page has.
func (s *Scanner) checkSegment(at LSN, h []byte) bool {
	system := binary.LittleEndian.Uint64(h[24:])
	size, block := binary.LittleEndian.Uint32(h[32:]), binary.LittleEndian.Uint32(h[36:])
	if s.config.System != 0 && system != s.config.System {
		return s.failf(at, "the WAL is of the system %d, not %d", system, s.config.System)
	}
	if uint64(size) != s.config.SegmentSize || block != PageSize {
		return s.failf(at, "the WAL has segments of %d bytes and pages of %d, not %d and %d", size, block, s.config.SegmentSize, PageSize)
	}
	s.config.System = system
	return true
}

// continued compares a page header with the preceding record, of which rest bytes are on this page and the following
// ones.
func (s *Scanner) continued(at LSN, info uint16, rest int) {
	continued := info&firstIsContinued != 0
	switch {
	case s.got > 0 && info&firstIsOverwritten != 0:
		// The server crashed while it wrote a record, and continued here. The part that was written is void.
		s.got = 0
	case s.got > 0 && (!continued || rest != s.total-s.got):
		s.failf(at, "a page continues %d bytes of a record, not %d", rest, s.total-s.got)
	case s.got == 0 && continued && !s.lost:
		s.failf(at, "a page continues a record that has ended")
	case s.got == 0 && continued:
		s.passOver(rest)
	}
}

// passOver skips the part of this page that belongs to a record whose start is unknown.
func (s *Scanner) passOver(rest int) {
	if rest > s.left() {
		s.fill = s.pos + LSN(s.left())
		return
	}
	s.fill = align8(s.pos + LSN(rest))
	s.end = s.fill
}
