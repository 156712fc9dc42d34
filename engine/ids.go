package engine

import (
	"bufio"
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// idSource makes ULIDs that rise strictly within this process, also when the
// clock is set back.
type idSource struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64
}

func newIDSource() *idSource {
	return &idSource{entropy: ulid.Monotonic(bufio.NewReader(rand.Reader), 0)}
}

// next returns a ULID for the time at.
func (s *idSource) next(at time.Time) ulid.ULID {
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

// randomBytes returns 32 bytes from the operating system's generator, which
// does not fail (crypto/rand.Read).
func randomBytes() (random [32]byte) {
	_, _ = rand.Read(random[:])
	return random
}
