package core

import "sync"

// SpaceMargin is what a restore, an upgrade, a verification or a branch leaves on the disk beside what it writes, for the WAL of
// all servers.
const SpaceMargin = 16 * MinFreeSpace

// Space keeps the disk space that running operations will still write, so that those that begin together do not count on the
// same.
type Space struct {
	dir string

	mu       sync.Mutex
	measure  func() (free int64, err error) // nil for the disk of dir
	reserved map[string]reservation         // by operation
	others   []func() int64                 // see Count
}

// reservation is the space of one operation.
type reservation struct {
	bytes, left int64
}

// Count adds a function to what is reserved that returns the bytes that operations of another kind will still write.
func (s *Space) Count(others func() int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = append(s.others, others)
}

// MeasureWith replaces the disk by a function, for tests. nil is the disk again.
func (s *Space) MeasureWith(measure func() (free int64, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure = measure
}

// Free returns the free space of the disk, whoever will write there.
func (s *Space) Free() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free()
}

func (s *Space) free() (int64, error) {
	if s.measure != nil {
		return s.measure()
	}
	_, free, err := MeasureDisk(s.dir)
	return free, err
}

// Reserve reserves bytes for the operation with that id until Release, in place of what it has. If the disk has not the bytes
// and the margin beyond what other operations will still write, it reserves nothing and returns the error of refuse, which is
// told what there is. An empty id only checks. A disk that cannot be measured refuses nothing.
func (s *Space) Reserve(id string, bytes, margin int64, refuse func(free int64) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if free, err := s.free(); err == nil {
		if free -= s.stillNeeded(id); free < bytes+margin {
			return refuse(max(free, 0))
		}
	}
	if id == "" {
		return nil
	}
	if s.reserved == nil {
		s.reserved = map[string]reservation{}
	}
	s.reserved[id] = reservation{bytes, bytes}
	return nil
}

// stillNeeded returns what operations other than one will still write.
func (s *Space) stillNeeded(except string) (bytes int64) {
	for id, r := range s.reserved {
		if id != except {
			bytes += r.left
		}
	}
	for _, others := range s.others {
		bytes += others()
	}
	return bytes
}

// Written notes how much of its work an operation has done: the disk has that by now.
func (s *Space) Written(id string, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reserved[id]
	if !ok || total <= 0 {
		return
	}
	r.left = r.bytes - int64(float64(r.bytes)*min(1, float64(done)/float64(total)))
	s.reserved[id] = r
}

// Release ends the reservation of an operation, if it has one.
func (s *Space) Release(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, id)
}
