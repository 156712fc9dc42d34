package backup

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"time"
)

// controlFile is the file without which PostgreSQL does not start. It is
// published last, so it says that a directory is complete.
const controlFile = "global/pg_control"

// castagnoli is CRC-32C's table, which the hash/crc32 package never changes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The part of pg_control that is used lies between these; how long it is
// differs between majors.
const (
	shortestControl = 200
	longestControl  = 512
)

// controlIsSound reports whether b, a pg_control, was not being written while
// it was read: somewhere in it is the CRC-32C of all before, and zeros follow.
func controlIsSound(b []byte) bool {
	if len(b) < pageSize {
		return false
	}
	for n := shortestControl; n < longestControl; n += 4 {
		if binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli) && allZero(b[(n+4+7)&^7:pageSize]) {
			return true
		}
	}
	return false
}

// systemIdentifier is what tells one cluster from another.
func systemIdentifier(control []byte) uint64 { return binary.LittleEndian.Uint64(control) }

const (
	controlTries = 50
	controlPause = 20 * time.Millisecond
)

// readControl reads pg_control until its checksum is right.
func readControl(root *os.Root) ([]byte, error) {
	for range controlTries {
		b, err := root.ReadFile(controlFile)
		if err != nil {
			return nil, err
		}
		if controlIsSound(b) {
			return b, nil
		}
		time.Sleep(controlPause)
	}
	return nil, errors.New(controlFile + " is damaged: its checksum is wrong, however often it is read")
}
