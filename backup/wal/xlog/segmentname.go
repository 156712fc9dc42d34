package xlog

import (
	"fmt"
	"math/bits"
	"strconv"
)

// DefaultSegmentSize is the default size of a WAL segment in bytes (initdb --wal-segsize).
const DefaultSegmentSize = 16 << 20

// The limits of wal_segment_size, in bytes.
const (
	minSegmentSize = 1 << 20
	maxSegmentSize = 1 << 30
)

// segmentNameLength is the length of a PostgreSQL segment name.
const segmentNameLength = 24

// ValidSegmentSize reports whether PostgreSQL supports segments of size bytes.
func ValidSegmentSize(size uint64) bool {
	return size >= minSegmentSize && size <= maxSegmentSize && bits.OnesCount64(size) == 1
}

// SegmentName returns PostgreSQL's name for segment number n, with segments of size bytes (XLogFileName).
func SegmentName(timeline uint32, n, size uint64) string {
	perID := (1 << 32) / size
	return fmt.Sprintf("%08X%08X%08X", timeline, n/perID, n%perID)
}

// ParseSegmentName is the inverse of SegmentName.
func ParseSegmentName(name string, size uint64) (timeline uint32, n uint64, ok bool) {
	if len(name) != segmentNameLength || !ValidSegmentSize(size) {
		return 0, 0, false
	}
	var parts [3]uint64
	for i := range parts {
		part, err := strconv.ParseUint(name[8*i:8*i+8], 16, 32)
		if err != nil {
			return 0, 0, false
		}
		parts[i] = part
	}
	n = parts[1]*((1<<32)/size) + parts[2]
	// PostgreSQL does not use other spellings (lower case, a third part that is too large).
	return uint32(parts[0]), n, parts[0] > 0 && name == SegmentName(uint32(parts[0]), n, size)
}
