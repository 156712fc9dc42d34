package backup

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// lsn is a position in the WAL.
type lsn uint64

// parseLSN reads PostgreSQL's form, two hexadecimal numbers "X/Y".
func parseLSN(s string) (lsn, error) {
	high, low, ok := strings.Cut(s, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if !ok || err != nil || err2 != nil {
		return 0, fmt.Errorf("%q is not an LSN", s)
	}
	return lsn(h<<32 | l), nil
}

func (p lsn) String() string { return fmt.Sprintf("%X/%X", uint64(p)>>32, uint32(p)) }

// walRange is the WAL a backup needs to become consistent.
type walRange struct {
	timeline    int
	start, stop lsn
}

func (r walRange) String() string {
	return fmt.Sprintf("%v to %v on timeline %d", r.start, r.stop, r.timeline)
}

const walPrefix = "pg_wal/"

// covered checks that files, by name, hold every segment of r, each whole.
func (r walRange) covered(files contents) error {
	size := segmentSize(files)
	if bits.OnesCount64(size) != 1 || r.stop <= r.start {
		return fmt.Errorf("the archive holds no WAL for %v", r)
	}
	for n := uint64(r.start) / size; n <= (uint64(r.stop)-1)/size; n++ {
		name := walPrefix + segmentName(r.timeline, n, size)
		if f, ok := files[name]; !ok || f.size != int64(size) {
			return fmt.Errorf("the archive lacks %s, which %v needs", name, r)
		}
	}
	return nil
}

// segmentSize is the largest WAL file's size: 16 MiB, or what initdb was told.
func segmentSize(files contents) (size uint64) {
	for name, f := range files {
		if segment, ok := strings.CutPrefix(name, walPrefix); ok && len(segment) == 24 {
			size = max(size, uint64(f.size))
		}
	}
	return size
}

// segmentName is the file name of segment n, as PostgreSQL's XLogFileName.
func segmentName(timeline int, n, size uint64) string {
	perID := (1 << 32) / size
	return fmt.Sprintf("%08X%08X%08X", timeline, n/perID, n%perID)
}
