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

// Status is what a receiver knows, from facts.
type Status struct {
	State    State
	Timeline uint32
	Durable  xlog.LSN  // all before it is safe in the archive
	At       time.Time // when that was last true of more than before

	// RestorableTo is the time, by the server's clock, up to which every commit
	// is safe; zero = not known yet.
	RestorableTo time.Time
	// Backlog is how many bytes of WAL the server had flushed, and the archive
	// had not, when the server last spoke.
	Backlog int64

	// Lag is the time from the last commit to its being safe; MaxLag and LagP99
	// are of the commits of the last minute or two.
	Lag, MaxLag, LagP99 time.Duration

	LastError  string // "" once something has been found to be safe since
	LastFailed time.Time
	Failures   int // since the receiver was opened
	Packing    string

	SlotState string // wal_status of the server's slot
	SafeBytes int64  // safe_wal_size: what may be written before the slot is lost; -1 = without a limit
}

// Well reports whether WAL comes in, and has done so since the last failure: a
// connection that comes back only to break again is not well meanwhile.
func (s Status) Well() bool { return s.State == StateStreaming && s.LastError == "" }

// RPO is how much of the past would be missing if the server were lost now:
// while all is well the time a commit takes to be safe, else the time since
// when commits are not known to be.
func (s Status) RPO(now time.Time) time.Duration {
	if s.Well() && s.Backlog == 0 {
		return s.Lag
	}
	if s.RestorableTo.IsZero() {
		return 0
	}
	return max(s.Lag, now.Sub(s.RestorableTo))
}

// restorable notes a time by which all commits are safe. One that is much
// earlier than the last says that the server's clock was set back.
func (s *Status) restorable(to time.Time) {
	s.LastError = ""
	if to.After(s.RestorableTo) || s.RestorableTo.Sub(to) > clockSlack {
		s.RestorableTo = to
	}
}

// ledger keeps a receiver's Status.
type ledger struct {
	mu     sync.Mutex
	status Status
	lags   lagCounter
}

func (l *ledger) change(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *ledger) get() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.MaxLag, s.LagP99 = l.lags.max(), l.lags.quantile(99)
	return s
}

// durable records that all before lsn is safe.
func (l *ledger) durable(timeline uint32, lsn xlog.LSN, commits []time.Time, now time.Time) {
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

// lagCounter counts durations by their size, in steps of a quarter. Every
// minute it starts anew, and keeps the minute before.
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

// lagSteps begin at 10 µs and end behind an hour.
var lagSteps = func() (steps [96]time.Duration) {
	step := 10e3
	for n := range steps {
		steps[n] = time.Duration(step)
		step *= 1.25
	}
	return steps
}()

func (c *lagCounter) max() time.Duration { return max(c.now.most, c.before.most) }

// quantile is the step below which so many percent of the lags are.
func (c *lagCounter) quantile(percent int) time.Duration {
	total, seen := c.now.total+c.before.total, 0
	for n := range c.now.steps {
		if seen += c.now.steps[n] + c.before.steps[n]; seen > 0 && seen*100 >= total*percent {
			return min(lagSteps[n], c.max())
		}
	}
	return 0
}
