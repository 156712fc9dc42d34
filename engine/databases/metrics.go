package databases

import (
	"errors"
	"sync"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// sampleBuffer combines the statistics of the instances into samples of the
// shortest series and keeps finished samples until they are written.
type sampleBuffer struct {
	mu   sync.Mutex
	open map[string]*step
	over []databaseSample
}

// step is the sample of a database whose interval has not ended.
type step struct {
	sample  model.Sample
	commits int64         // counted during the step
	covered time.Duration // the part of the step that commits covers
	last    Statistics
}

type databaseSample struct {
	database string
	model.Sample
}

func newSampleBuffer() *sampleBuffer { return &sampleBuffer{open: map[string]*step{}} }

// observe adds the statistics of an instance.
func (m *sampleBuffer) observe(id string, now Statistics) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin := now.At.Truncate(model.SeriesDay().Step)
	s := m.open[id]
	if s == nil || !s.sample.At.Equal(begin) {
		next := &step{sample: model.Sample{At: begin}, last: now}
		if s != nil {
			m.over = append(m.over, databaseSample{id, s.sample})
			next.last = s.last
		}
		s = next
		m.open[id] = s
	}
	s.add(now)
}

func (s *step) add(now Statistics) {
	s.sample.SizeBytes = now.SizeBytes
	s.sample.Connections = max(s.sample.Connections, now.Connections)
	if now.RPO != nil {
		s.sample.AddArchive(&model.ArchiveSample{WALLag: now.WALLag, RPO: *now.RPO})
	}
	// A decreased counter belongs to a new server: the old one was restarted after a
	// crash, or the database was restored.
	if elapsed := now.At.Sub(s.last.At); elapsed > 0 && elapsed <= model.SeriesDay().Step && now.Commits >= s.last.Commits {
		s.commits += now.Commits - s.last.Commits
		s.covered += elapsed
		s.sample.Commits = float64(s.commits) / s.covered.Seconds()
	}
	s.last = now
}

// current returns the sample of a database whose interval has not ended.
func (m *sampleBuffer) current(id string) (model.Sample, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.open[id]
	if s == nil {
		return model.Sample{}, false
	}
	return s.sample, true
}

func (m *sampleBuffer) drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, id)
}

// take returns the finished samples and forgets them; with all, it also returns
// the unfinished ones.
func (m *sampleBuffer) take(all bool) []databaseSample {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.over
	m.over = nil
	if all {
		for id, s := range m.open {
			taken = append(taken, databaseSample{id, s.sample})
		}
	}
	return taken
}

// writeMetrics stores samples in the shorter series and updates the samples of the
// longer series that contain them.
func (s *Service) writeMetrics(samples []databaseSample) error {
	if len(samples) == 0 {
		return nil
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		for _, it := range samples {
			if _, err := tx.Databases().Get(it.database); err != nil {
				continue // deleted meanwhile
			}
			believed := !s.core.KeepsAll()
			if believed && !s.core.IsPlausible(it.At) {
				continue // it began when the clock was ahead
			}
			if err := tx.PutSample(it.database, model.SeriesDay(), it.Sample); err != nil {
				return err
			}
			if err := rollUp(tx, it); err != nil {
				return err
			}
			if !believed {
				continue // by a wrong clock, all others would look old
			}
			if err := pruneSamples(tx, it); err != nil {
				return err
			}
		}
		return nil
	})
}

// pruneSamples removes the samples of a database that are older than those the new one's series keep.
func pruneSamples(tx *meta.Tx, latest databaseSample) error {
	return errors.Join(
		tx.PruneSamples(latest.database, model.SeriesDay(), latest.At),
		tx.PruneSamples(latest.database, model.SeriesMonth(), latest.At.Truncate(model.SeriesMonth().Step)))
}

// rollUp computes the sample of the longer series that s is part of.
func rollUp(tx *meta.Tx, s databaseSample) error {
	begin := s.At.Truncate(model.SeriesMonth().Step)
	parts, err := tx.Samples(s.database, model.SeriesDay(), begin)
	if err != nil {
		return err
	}
	return tx.PutSample(s.database, model.SeriesMonth(), aggregate(parts, begin))
}

// aggregate combines samples of the shorter series into the sample of the longer
// series that begins at begin.
func aggregate(parts []model.Sample, begin time.Time) model.Sample {
	whole := model.Sample{At: begin}
	count := 0
	for _, part := range parts {
		if !part.At.Before(begin.Add(model.SeriesMonth().Step)) {
			break
		}
		count++
		whole.Add(part, count)
	}
	return whole
}

// Metrics returns the samples of a database, oldest first. The last one is
// incomplete. There are no samples for times when the database or the appliance was
// down, and none that a clock that was ahead has dated after now.
func (s *Service) Metrics(call *model.Call, id string, series model.Series) ([]model.Sample, error) {
	if _, err := s.Database(call, id); err != nil {
		return nil, err
	}
	current, open := s.samples.current(id)
	begin, now := current.At.Truncate(series.Step), s.core.Clock()
	var samples, parts []model.Sample
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		if samples, err = tx.Samples(id, series, now.Add(-time.Duration(series.Keep)*series.Step)); err == nil && open {
			parts, err = tx.Samples(id, model.SeriesDay(), begin)
		}
		return err
	})
	if err != nil || !open {
		return earlier(samples, now), err
	}
	parts = append(earlier(parts, current.At), current)
	return append(earlier(samples, begin), aggregate(parts, begin)), nil
}

// earlier returns the samples that began before at.
func earlier(samples []model.Sample, at time.Time) []model.Sample {
	for n := len(samples); n > 0 && !samples[n-1].At.Before(at); n-- {
		samples = samples[:n-1]
	}
	return samples
}

// KeepMetrics writes the finished samples; with all, it also writes the unfinished
// ones.
func (s *Service) KeepMetrics(all bool) {
	if err := s.writeMetrics(s.samples.take(all)); err != nil {
		s.core.Log.Error("write metrics", "error", err)
	}
}
