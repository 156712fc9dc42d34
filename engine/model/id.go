package model

import (
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"
)

// ID writes a ULID as ids are: behind a prefix, and in lower case.
func ID(prefix string, id ulid.ULID) string {
	var room [16 + ulid.EncodedSize]byte // of the stack
	text := append(append(room[:0], prefix...), make([]byte, ulid.EncodedSize)...)
	own := text[len(prefix):]
	_ = id.MarshalTextTo(own) // has no error but for too little room
	for i := range own {
		own[i] |= 'a' - 'A' // which digits have anyway
	}
	return string(text)
}

// NewRequestID makes the id of a request, which sorts by time. What the client
// may have sent as X-Request-Id is not trusted: ids would not be unique.
func NewRequestID() string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(time.Now())) // has no error for some thousand years
	_, _ = rand.Read(id[6:])                   // never fails
	return ID("req_", id)
}
