package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Every upload writes its object and its audit entry twice each, to the journal
// and to the metadata; encoding/json took longer for that than bbolt does. What
// is here writes the same text, byte for byte.

// AppendJSON appends the object as [json.Marshal] writes it.
func (o *Object) AppendJSON(text []byte) ([]byte, error) {
	text = appendString(append(text, `{"bucket":`...), o.Bucket)
	text = appendString(append(text, `,"key":`...), o.Key)
	text = appendString(append(text, `,"version":`...), o.Version)
	text = appendString(append(text, `,"blob":`...), o.Blob)
	text = strconv.AppendUint(append(text, `,"segment":`...), uint64(o.Segment), 10)
	text = strconv.AppendInt(append(text, `,"size_bytes":`...), o.SizeBytes, 10)
	text = appendString(append(text, `,"content_type":`...), o.ContentType)
	text = strconv.AppendUint(append(text, `,"crc32c":`...), uint64(o.CRC32C), 10)
	text = appendString(append(text, `,"checksum_sha256":`...), o.ChecksumSHA256)
	text, err := appendTime(append(text, `,"last_modified":`...), o.LastModified)
	return append(text, '}'), err
}

// AppendJSON appends the entry as [json.Marshal] writes it.
func (e *AuditEntry) AppendJSON(text []byte) ([]byte, error) {
	text = appendString(append(text, `{"id":`...), e.ID)
	text, err := appendTime(append(text, `,"at":`...), e.At)
	text = appendString(append(text, `,"organization":`...), e.Organization)
	text = appendString(append(text, `,"actor":{"type":`...), string(e.Actor.Type))
	text = appendString(append(text, `,"id":`...), e.Actor.ID)
	text = appendString(append(text, `,"name":`...), e.Actor.Name)
	text = appendString(append(text, `},"action":`...), string(e.Action))
	text = appendString(append(text, `,"resource":{"type":`...), string(e.Resource.Type))
	text = appendString(append(text, `,"id":`...), e.Resource.ID)
	text = appendString(append(text, `,"name":`...), e.Resource.Name)
	text = appendString(append(text, `},"outcome":`...), string(e.Outcome))
	text = appendString(append(text, `,"error_code":`...), string(e.ErrorCode))
	text = appendString(append(text, `,"request_id":`...), e.RequestID)
	text = appendString(append(text, `,"ip":`...), e.IP)
	text = appendString(append(text, `,"user_agent":`...), e.UserAgent)
	text = appendStrings(append(text, `,"details":`...), e.Details)
	text = appendString(append(text, `,"previous_hash":`...), e.PreviousHash)
	text = appendString(append(text, `,"hash":`...), e.Hash)
	return append(text, '}'), err
}

// appendString appends a string in quotes. Of most nothing is to be escaped.
func appendString(text []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, _ := json.Marshal(s) // strings have no errors
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}

func appendStrings(text []byte, m map[string]string) []byte {
	if m == nil {
		return append(text, "null"...)
	}
	var room [8]string // on the stack: details are few
	names := slices.AppendSeq(room[:0], maps.Keys(m))
	slices.Sort(names)
	text = append(text, '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, name), ':')
		text = appendString(text, m[name])
	}
	return append(text, '}')
}

func appendTime(text []byte, t time.Time) ([]byte, error) {
	text, err := t.AppendText(append(text, '"'))
	if err != nil {
		return text, fmt.Errorf("encode time: %w", err)
	}
	return append(text, '"'), nil
}
