package advice

import "time"

// Memory holds counters of earlier visits to a database, since counters that
// only grow say nothing of today. It belongs to one goroutine.
type Memory struct{ samples map[string]*samples }

// samples are two visits, so that there is always one that lies at least a
// window back, once there were enough.
type samples struct{ older, newer sample }

type sample struct {
	at     time.Time
	values map[string]float64
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{samples: map[string]*samples{}} }

// grown notes the counters of a check and returns by how much each has grown
// since an earlier visit, the window ago where there was one; nil at the first.
// Counters that were reset are left out.
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
