// Package wal is the write-ahead log as backups see it.
package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a position in the WAL, in bytes from its beginning.
type LSN uint64

// ParseLSN reads PostgreSQL's form, two hexadecimal numbers "X/Y".
func ParseLSN(s string) (LSN, error) {
	high, low, ok := strings.Cut(s, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err != nil || err2 != nil {
		return 0, fmt.Errorf("%q is not an LSN", s)
	}
	return LSN(h<<32 | l), nil
}

// String returns PostgreSQL's form.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint32(l)) }
