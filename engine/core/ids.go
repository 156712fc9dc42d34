package core

import (
	"bufio"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// IDSource makes ULIDs that rise strictly within this process, also when the
// clock is set back.
type IDSource struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64
}

// newIDSource returns a source of ids.
func newIDSource() *IDSource {
	return &IDSource{entropy: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// Next returns a ULID for the time at.
func (s *IDSource) Next(at time.Time) ulid.ULID {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, ulid.Timestamp(at))
	id, err := ulid.New(s.last, s.entropy)
	if err != nil { // the random part overflowed within one millisecond
		s.last++
		id = ulid.MustNew(s.last, s.entropy)
	}
	return id
}

// FormatID writes a ULID as an id: a prefix, then the ULID in lower case.
func FormatID(prefix string, id ulid.ULID) string {
	var room [16 + ulid.EncodedSize]byte // of the stack
	text := append(append(room[:0], prefix...), make([]byte, ulid.EncodedSize)...)
	own := text[len(prefix):]
	_ = id.MarshalTextTo(own) // has no error but for too little room
	for i := range own {
		own[i] |= 'a' - 'A' // which digits have anyway
	}
	return string(text)
}

// NewRequestID makes the id of a request, which sorts by time. An
// X-Request-Id of the client is not used, because it may not be unique.
func NewRequestID() string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(time.Now())) // has no error for some thousand years
	_, _ = rand.Read(id[6:])                   // never fails
	return FormatID("req_", id)
}

// RandomBytes returns 32 bytes from the operating system's generator, which
// does not fail (crypto/rand.Read).
func RandomBytes() (random [32]byte) {
	_, _ = rand.Read(random[:])
	return random
}
