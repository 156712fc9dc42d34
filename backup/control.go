package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"time"
)

// controlFile is the file without which PostgreSQL does not start. A restore
// publishes it last, so it marks a complete directory.
const controlFile = "global/pg_control"

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The length of the used part of pg_control, which depends on the major version, is between these limits.
const (
	shortestControl = 200
	longestControl  = 512
)

// controlIsSound reports whether b is a pg_control that was read completely and not during a write.
func controlIsSound(b []byte) bool { return controlContent(b) != nil }

// controlContent returns the part of a valid pg_control before its CRC: the
// CRC-32C of everything before it, followed by zeros.
func controlContent(b []byte) []byte {
	if len(b) < pageSize {
		return nil
	}
	for n := shortestControl; n < longestControl; n += 4 {
		if binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli) && allZero(b[(n+4+7)&^7:pageSize]) {
			return b[:n]
		}
	}
	return nil
}

// controlFormat is the encoded floatFormat field, 1234567.0 (ControlFileData in pg_control.h). Every major version's
// pg_control has it, at a multiple of 8.
var controlFormat = binary.LittleEndian.AppendUint64(nil, math.Float64bits(1234567))

// sameForm reports whether two pg_control files describe the same on-disk format. initdb sets the fields from
// floatFormat on, and they never change, except that pg_checksums switches page checksums while the server is down.
func sameForm(a, b []byte) bool {
	_, formA, foundA := bytes.Cut(controlContent(a), controlFormat)
	_, formB, foundB := bytes.Cut(controlContent(b), controlFormat)
	return foundA && foundB && bytes.Equal(formA, formB)
}

// systemIdentifier returns the identifier of the cluster.
func systemIdentifier(control []byte) uint64 { return binary.LittleEndian.Uint64(control) }

const (
	controlTries = 50
	controlPause = 20 * time.Millisecond
)

// readControl reads pg_control until its checksum is correct.
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
	return nil, errors.New(controlFile + " is damaged: its checksum stays wrong after repeated reads")
}
