// Package pgcontrol reads and changes global/pg_control of a PostgreSQL cluster. The offsets here are the same in every
// major version (ControlFileData in pg_control.h).
package pgcontrol

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"hash/crc32"
)

// File is the path of pg_control in a data directory.
const File = "global/pg_control"

// size is the size of the file. The part that is not used contains zeros.
const size = 8 << 10

// The length of the used part, which depends on the major version, is between these limits.
const (
	shortest = 200
	longest  = 512
)

// castagnoli is the CRC-32C table.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The offsets.
const (
	state          = 16
	checkpoint     = 32 // the position of the last checkpoint record
	timeline       = 48 // in the copy of the checkpoint
	nonceLength    = 32
	identifierSize = 8
)

// Content returns the part of a valid pg_control before its CRC: the CRC-32C of
// everything before it, followed by zeros. It returns nil if the file is not valid,
// because it was not read completely or was read during a write.
func Content(b []byte) []byte {
	if len(b) < size {
		return nil
	}
	for n := shortest; n < longest; n += 4 {
		if binary.LittleEndian.Uint32(b[n:]) == crc32.Checksum(b[:n], castagnoli) && allZero(b[(n+4+7)&^7:size]) {
			return b[:n]
		}
	}
	return nil
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// SystemIdentifier returns the identifier of the cluster.
func SystemIdentifier(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// stateShutDown is DB_SHUTDOWNED: a primary was shut down.
const stateShutDown = 1

// ShutDown reports whether the cluster is one that was shut down and not started since.
func ShutDown(b []byte) bool { return binary.LittleEndian.Uint32(b[state:]) == stateShutDown }

// Checkpoint returns the timeline and the position of the last checkpoint.
func Checkpoint(b []byte) (tli uint32, lsn uint64) {
	return binary.LittleEndian.Uint32(b[timeline:]), binary.LittleEndian.Uint64(b[checkpoint:])
}

// Renew gives a valid pg_control another system identifier. It also changes the nonce
// from which the server invents the salts of roles that do not exist, so that two
// clusters do not invent the same. The nonce is the last field before the CRC.
func Renew(b []byte, identifier uint64) {
	n := len(Content(b))
	binary.LittleEndian.PutUint64(b[:identifierSize], identifier)
	_, _ = rand.Read(b[n-nonceLength : n])
	binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli))
}
