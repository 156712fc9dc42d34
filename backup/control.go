package backup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"time"

	"holdfast/internal/pgcontrol"
)

// controlFile is the file without which PostgreSQL does not start. A restore
// publishes it last, so it marks a complete directory.
const controlFile = pgcontrol.File

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// controlFormat is the encoded floatFormat field, 1234567.0 (ControlFileData in pg_control.h). Every major version's
// pg_control has it, at a multiple of 8.
var controlFormat = binary.LittleEndian.AppendUint64(nil, math.Float64bits(1234567))

// sameForm reports whether two pg_control files describe the same on-disk format. initdb sets the fields from
// floatFormat on, and they never change, except that pg_checksums switches page checksums while the server is down.
func sameForm(a, b []byte) bool {
	_, formA, foundA := bytes.Cut(pgcontrol.Content(a), controlFormat)
	_, formB, foundB := bytes.Cut(pgcontrol.Content(b), controlFormat)
	return foundA && foundB && bytes.Equal(formA, formB)
}

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
		if pgcontrol.Content(b) != nil {
			return b, nil
		}
		time.Sleep(controlPause)
	}
	return nil, errors.New(controlFile + " is damaged: its checksum stays wrong after repeated reads")
}
