package meta

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// A stored record is a version byte, the CRC-32C of the rest, and the
// record as JSON.
const (
	recordVersion = 1
	recordHeader  = 5
)

// CorruptError reports that a stored record differs from what was written.
type CorruptError struct{ Where string }

// Error implements error.
func (e *CorruptError) Error() string {
	return "the metadata record " + e.Where + " is damaged"
}

func encodeRecord(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return frame(text), nil
}

func decodeRecord(where string, data []byte, v any) error {
	text, err := unframe(where, data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("decode record %s: %w", where, err)
	}
	return nil
}

// frame prepends the header to a record's text.
func frame(text []byte) []byte {
	record := make([]byte, recordHeader, recordHeader+len(text))
	record[0] = recordVersion
	binary.BigEndian.PutUint32(record[1:], checksum(text))
	return append(record, text...)
}

// unframe checks the header and returns the text after it.
func unframe(where string, data []byte) ([]byte, error) {
	if len(data) < recordHeader || data[0] != recordVersion {
		return nil, &CorruptError{Where: where}
	}
	text := data[recordHeader:]
	if binary.BigEndian.Uint32(data[1:]) != checksum(text) {
		return nil, &CorruptError{Where: where}
	}
	return text, nil
}

// castagnoli is the CRC-32C table; it is constant.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }
