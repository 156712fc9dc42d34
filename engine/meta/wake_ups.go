package meta

import "sync"

// wakeUps wakes everybody who waits for it.
type wakeUps struct {
	mu      sync.Mutex
	waiting chan struct{} // nil when nobody waits
}

// wakes are those who wait for events and for deliveries.
type wakes struct{ events, deliveries wakeUps }

// wait returns a channel that the next signal closes.
func (s *wakeUps) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

// signal closes the channels that wait returned.
func (s *wakeUps) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
