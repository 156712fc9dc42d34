package wal

import (
	"sync"
	"time"

	"holdfast/backup/wal/xlog"
)

// State is the state of a receiver.
type State string

// States of a receiver.
const (
	StateConnecting State = "connecting" // to the server, or waiting to try again
	StateStreaming  State = "streaming"
	StateFailed     State = "failed" // until another is opened; Status.LastError has the reason
	StateClosed     State = "closed"
)

// Status is the measured status of a receiver.
type Status struct {
	State    State
	Timeline uint32
	Durable  xlog.LSN  // WAL before it is durable in the archive
	At       time.Time // when Durable last advanced

	// RestorableTo is the time, by the server's clock, up to which every commit is durable in the archive; zero =
	// not known yet.
	RestorableTo time.Time
	// Backlog is the number of bytes of flushed WAL that the archive lacked at the last poll.
	Backlog int64

	// Lag is the time from the last commit to its durability in the archive.
	Lag time.Duration

	LastError     string // cleared when WAL is archived again
	LastFailed    time.Time
	Failures      int // since the receiver was opened
	CompressError string

	SlotState string // wal_status of the server's slot
}

// Healthy reports whether WAL is being archived and was archived since the last failure. A connection that keeps
// breaking is not healthy in between.
func (s Status) Healthy() bool { return s.State == StateStreaming && s.LastError == "" }

// RPO is the span of time whose commits would be lost if the server were lost now: while the receiver is healthy,
// the lag of commits, otherwise the time since the last moment at which all commits are known to be archived.
func (s Status) RPO(now time.Time) time.Duration {
	if s.Healthy() && s.Backlog == 0 {
		return s.Lag
	}
	if s.RestorableTo.IsZero() {
		return 0
	}
	return max(s.Lag, now.Sub(s.RestorableTo))
}

// restorable records a time up to which all commits are archived. A time much earlier than the last means that the
// server's clock was set back.
func (s *Status) restorable(to time.Time) {
	s.LastError = ""
	if to.After(s.RestorableTo) || s.RestorableTo.Sub(to) > clockSlack {
		s.RestorableTo = to
	}
}

// statusTracker guards a receiver's Status.
type statusTracker struct {
	mu     sync.Mutex
	status Status
}

func (l *statusTracker) change(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *statusTracker) get() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

// durable records that the WAL before lsn is archived.
func (l *statusTracker) durable(timeline uint32, lsn xlog.LSN, commits []time.Time, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.status
	if lsn > s.Durable || timeline != s.Timeline {
		s.At = now
	}
	s.Timeline, s.Durable = timeline, lsn
	for _, at := range commits {
		s.Lag = max(0, now.Sub(at))
		s.restorable(at)
	}
}
