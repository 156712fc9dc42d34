package model

import "time"

// Sample is what a database did in one step of time.
type Sample struct {
	At          time.Time `json:"at"`          // when the step began
	SizeBytes   int64     `json:"size_bytes"`  // at the step's end
	Connections int       `json:"connections"` // the most at a time
	Commits     float64   `json:"commits"`     // each second, on average
	// Archive is nil where nothing received the WAL.
	Archive *ArchiveSample `json:"archive,omitempty"`
}

// ArchiveSample is how far the archive was behind the server, at the worst.
type ArchiveSample struct {
	WALLag int64         `json:"wal_lag"` // bytes of WAL it had not
	RPO    time.Duration `json:"rpo"`     // of commits that would have been lost
}

// AddArchive makes the worst that was seen of the archive part of the step.
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

// Add makes part, the count-th of the samples that a longer step is made of,
// part of it.
func (s *Sample) Add(part Sample, count int) {
	s.SizeBytes = part.SizeBytes
	s.Connections = max(s.Connections, part.Connections)
	s.AddArchive(part.Archive)
	s.Commits += (part.Commits - s.Commits) / float64(count) // the mean so far
}

// Series is a ring of samples of one step each.
type Series struct {
	Name string
	Step time.Duration
	Keep int // samples
}

// SeriesDay is a day in steps of five minutes.
func SeriesDay() Series { return Series{Name: "5m", Step: 5 * time.Minute, Keep: 288} }

// SeriesMonth is thirty days in steps of an hour.
func SeriesMonth() Series { return Series{Name: "1h", Step: time.Hour, Keep: 720} }
