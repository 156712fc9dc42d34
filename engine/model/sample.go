package model

import "time"

// Sample is what a database did in one step of time.
type Sample struct {
	At          time.Time `json:"at"`          // when the step began
	SizeBytes   int64     `json:"size_bytes"`  // at the step's end
	Connections int       `json:"connections"` // the most at a time
	Commits     float64   `json:"commits"`     // each second, on average
}

// Add makes part, the count-th of the samples that a longer step is made of,
// part of it.
func (s *Sample) Add(part Sample, count int) {
	s.SizeBytes = part.SizeBytes
	s.Connections = max(s.Connections, part.Connections)
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
