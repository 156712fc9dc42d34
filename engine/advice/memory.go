package advice

import "time"

// Memory holds the counters of earlier sessions with a database, because cumulative
// counters say nothing about recent activity. It belongs to one goroutine.
type Memory struct{ samples map[string]*samples }

// samples holds two samples, so that once there are enough, one is always at least a
// window old.
type samples struct{ older, newer sample }

type sample struct {
	at     time.Time
	values map[string]float64
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{samples: map[string]*samples{}} }

// grown records the counters of a check and returns by how much each has grown since an
// earlier session, a window ago if there was one; nil the first time. It omits counters
// that were reset.
func (s *Session) grown(check string, values map[string]float64) map[string]float64 {
	kept, ok := s.Memory.samples[check]
	now := sample{s.Now, values}
	if !ok {
		s.Memory.samples[check] = &samples{newer: now}
		return nil
	}
	if s.Now.Sub(kept.newer.at) >= s.Limits.Window {
		kept.older, kept.newer = kept.newer, now
	}
	base := kept.older
	if base.values == nil {
		base = kept.newer
	}
	grown := map[string]float64{}
	for name, value := range values {
		if by := value - base.values[name]; by >= 0 {
			grown[name] = by
		}
	}
	return grown
}
