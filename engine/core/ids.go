package core

import (
	"bufio"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// IDSource makes ULIDs that increase strictly within this process, even if the clock
// is set back.
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

// Follow makes the ids that follow sort after id, even if the clock was set back.
func (s *IDSource) Follow(id string) {
	_, text, _ := strings.Cut(id, "_")
	last, err := ulid.Parse(text)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, last.Time()+1)
}

// FormatID formats a ULID as an id: a prefix, then the ULID in lower case.
func FormatID(prefix string, id ulid.ULID) string {
	var room [16 + ulid.EncodedSize]byte // on the stack
	text := append(append(room[:0], prefix...), make([]byte, ulid.EncodedSize)...)
	own := text[len(prefix):]
	_ = id.MarshalTextTo(own) // fails only if there is too little space
	for i := range own {
		own[i] |= 'a' - 'A' // digits already have the bit set
	}
	return string(text)
}

// NewRequestID returns the id of a request; ids sort by time. A client's
// X-Request-Id is not used, because it may not be unique.
func NewRequestID() string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(time.Now())) // cannot fail for some thousand years
	_, _ = rand.Read(id[6:])                   // never fails
	return FormatID("req_", id)
}

// RequestTime returns when the request with an id arrived.
func RequestTime(id string) (time.Time, bool) {
	text, found := strings.CutPrefix(id, "req_")
	made, err := ulid.ParseStrict(text)
	return ulid.Time(made.Time()), found && err == nil
}

// RandomBytes returns 32 bytes from the operating system's generator, which does not
// fail (crypto/rand.Read).
func RandomBytes() (random [32]byte) {
	_, _ = rand.Read(random[:])
	return random
}
