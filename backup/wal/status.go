package wal

import (
	"sync"
	"time"

	"holdfast/backup/wal/xlog"
)

// State is what a receiver is doing.
type State string

// States of a receiver.
const (
	StateConnecting State = "connecting" // to the server, or waiting to try again
	StateStreaming  State = "streaming"
	StateFailed     State = "failed" // for good; Status.LastError says why
	StateClosed     State = "closed"
)

// Status is the state of a receiver, from measurements.
type Status struct {
	State    State
	Timeline uint32
	Durable  xlog.LSN  // WAL before it is durable in the archive
	At       time.Time // when Durable last advanced

	// RestorableTo is the time, by the server's clock, up to which every commit
	// is durable in the archive; zero = not known yet.
	RestorableTo time.Time
	// Backlog is how many bytes of flushed WAL the archive lacked at the last
	// poll.
	Backlog int64

	// Lag is the time from the last commit to its durability in the archive.
	// MaxLag and LagP99 cover the commits of the last one to two minutes.
	Lag, MaxLag, LagP99 time.Duration

	LastError     string // cleared when WAL is archived again
	LastFailed    time.Time
	Failures      int // since the receiver was opened
	CompressError string

	SlotState string // wal_status of the server's slot
	SafeBytes int64  // safe_wal_size: WAL that may be written before the slot is lost; -1 = no limit
}

// Healthy reports whether WAL is being archived and was since the last failure.
// A connection that only comes back to break again is not healthy in between.
func (s Status) Healthy() bool { return s.State == StateStreaming && s.LastError == "" }

// RPO is how much of the past would be lost with the server now: while the
// receiver is healthy the lag of commits, otherwise the time since which
// commits are not known to be archived.
func (s Status) RPO(now time.Time) time.Duration {
	if s.Healthy() && s.Backlog == 0 {
		return s.Lag
	}
	if s.RestorableTo.IsZero() {
		return 0
	}
	return max(s.Lag, now.Sub(s.RestorableTo))
}

// restorable notes a time by which all commits are archived. A time much
// earlier than the last means that the server's clock was set back.
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
	lags   lagCounter
}

func (l *statusTracker) change(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *statusTracker) get() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.MaxLag, s.LagP99 = l.lags.max(), l.lags.quantile(99)
	return s
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
		l.lags.add(s.Lag)
		s.restorable(at)
	}
}

// lagCounter is a histogram of durations, in steps of 25 %. It starts again
// every minute and keeps the minute before.
type lagCounter struct {
	now, before lagCounts
	since       time.Time
}

type lagCounts struct {
	steps [96]int
	most  time.Duration
	total int
}

func (c *lagCounter) add(d time.Duration) {
	if now := time.Now(); now.Sub(c.since) > time.Minute {
		c.before, c.now, c.since = c.now, lagCounts{}, now
	}
	c.now.steps[lagStep(d)]++
	c.now.total++
	c.now.most = max(c.now.most, d)
}

// lagStep is the first step that is at least d.
func lagStep(d time.Duration) int {
	for n, limit := range lagSteps {
		if d <= limit {
			return n
		}
	}
	return len(lagSteps) - 1
}

// lagSteps range from 10 µs to more than an hour.
var lagSteps = func() (steps [96]time.Duration) {
	step := 10e3
	for n := range steps {
		steps[n] = time.Duration(step)
		step *= 1.25
	}
	return steps
}()

func (c *lagCounter) max() time.Duration { return max(c.now.most, c.before.most) }

// quantile is the step that percent of the lags do not exceed.
func (c *lagCounter) quantile(percent int) time.Duration {
	total, seen := c.now.total+c.before.total, 0
	for n := range c.now.steps {
		if seen += c.now.steps[n] + c.before.steps[n]; seen > 0 && seen*100 >= total*percent {
			return min(lagSteps[n], c.max())
		}
	}
	return 0
}
