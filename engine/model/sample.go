package model

import "time"

// Sample is a database's activity in one interval.
type Sample struct {
	At          time.Time `json:"at"`          // start of the interval
	SizeBytes   int64     `json:"size_bytes"`  // at the end of the interval
	Connections int       `json:"connections"` // maximum at any time
	Commits     float64   `json:"commits"`     // average per second
	// Archive is nil if nothing received the WAL.
	Archive *ArchiveSample `json:"archive,omitempty"`
}

// ArchiveSample is the archive's greatest lag behind the server.
type ArchiveSample struct {
	WALLag int64         `json:"wal_lag"` // bytes of WAL not yet archived
	RPO    time.Duration `json:"rpo"`     // age of the commits that would have been lost
}

// AddArchive merges seen into the sample, keeping the worst values.
func (s *Sample) AddArchive(seen *ArchiveSample) {
	if seen == nil {
		return
	}
	worst := *seen
	if s.Archive != nil {
		worst = ArchiveSample{WALLag: max(worst.WALLag, s.Archive.WALLag), RPO: max(worst.RPO, s.Archive.RPO)}
	}
	s.Archive = &worst
}

// Add merges part, the count-th sample of a longer interval, into that interval's
// sample.
func (s *Sample) Add(part Sample, count int) {
	s.SizeBytes = part.SizeBytes
	s.Connections = max(s.Connections, part.Connections)
	s.AddArchive(part.Archive)
	s.Commits += (part.Commits - s.Commits) / float64(count) // running mean
}

// Series is a ring of samples, one per step.
type Series struct {
	Name string
	Step time.Duration
	Keep int // samples
}

// SeriesDay is one day in steps of five minutes.
func SeriesDay() Series { return Series{Name: "5m", Step: 5 * time.Minute, Keep: 288} }

// SeriesMonth is thirty days in steps of one hour.
func SeriesMonth() Series { return Series{Name: "1h", Step: time.Hour, Keep: 720} }
