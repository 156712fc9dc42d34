package backup

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"time"

	"holdfast/internal/pgcontrol"
)

// controlFile is the file without which PostgreSQL does not start. A restore
// publishes it last, so it marks a complete directory.
const controlFile = pgcontrol.File

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sameForm reports whether two pg_control files describe the same on-disk format.
func sameForm(a, b []byte) bool {
	formA, foundA := pgcontrol.Form(a)
	formB, foundB := pgcontrol.Form(b)
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
