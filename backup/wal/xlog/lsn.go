package xlog

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the WAL, in bytes since its beginning.
type LSN uint64

// ParseLSN parses PostgreSQL's form of an LSN, two hexadecimal numbers "X/Y".
func ParseLSN(s string) (LSN, error) {
	high, low, ok := strings.Cut(s, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err != nil || err2 != nil {
		return 0, fmt.Errorf("%q is not an LSN, which looks like 16/B374D848", s)
	}
	return LSN(h<<32 | l), nil
}

// String returns PostgreSQL's form.
func (p LSN) String() string { return fmt.Sprintf("%X/%X", uint64(p)>>32, uint32(p)) }

// page returns the start of the page that contains p.
func (p LSN) page() LSN { return p &^ (PageSize - 1) }

// RecordEnd returns the start of the page if p is within or right after the page's header, otherwise p. Both
// positions mean "everything before this page", and records end at the former.
func (p LSN) RecordEnd(segmentSize uint64) LSN {
	header := LSN(shortHeader)
	if uint64(p.page())%segmentSize == 0 {
		header = longHeader
	}
	if p-p.page() <= header {
		return p.page()
	}
	return p
}

func align8(p LSN) LSN { return (p + 7) &^ 7 }

// AfterRecord returns the end of a record of length bytes that starts at p, counting the headers of the pages it
// continues on.
func (p LSN) AfterRecord(length, segmentSize uint64) LSN {
	for {
		left := uint64(PageSize - p%PageSize)
		if length <= left {
			return align8(p + LSN(length))
		}
		length -= left
		p += LSN(left)
		if uint64(p)%segmentSize == 0 {
			p += longHeader
		} else {
			p += shortHeader
		}
	}
}
