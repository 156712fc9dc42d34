package pgcontrol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
)

// format is the encoded floatFormat field, 1234567.0 (ControlFileData in pg_control.h). Every major version's
// pg_control has it, at a multiple of 8.
var format = binary.LittleEndian.AppendUint64(nil, math.Float64bits(1234567))

// Form returns the fields of a valid pg_control that describe the on-disk format, which initdb sets and nothing changes, except
// that pg_checksums switches page checksums while the server is down.
func Form(b []byte) (fields []byte, found bool) {
	_, fields, found = bytes.Cut(Content(b), format)
	return fields, found
}

// settings are the settings stored in pg_control, in the order of its fields.
var settings = [...]string{
	"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction",
}

// Settings returns the values with which the server last ran of the settings that must not be smaller when its WAL is replayed.
// It locates them by the fields after them in every major version: track_commit_timestamp, maxAlign, which is 8, and
// floatFormat.
func Settings(b []byte) (map[string]int, error) {
	unknown := errors.New("the settings are not at the expected position in " + File)
	at := bytes.Index(b, format)
	if at < 64 || at%8 != 0 {
		return nil, unknown
	}
	number := func(at int) int { return int(int32(binary.LittleEndian.Uint32(b[at:]))) }
	if at -= 4; number(at) == 0 { // padding
		at -= 4
	}
	if number(at) != 8 {
		return nil, unknown
	}
	at -= 4 + 4*len(settings)
	found := map[string]int{}
	for n, name := range settings {
		value := number(at + 4*n)
		if value < 0 {
			return nil, unknown
		}
		found[name] = value
	}
	return found, nil
}
