package meta

import (
	"errors"
	"sync"
	"time"
)

// Redo is the changes of one transaction.
type Redo struct {
	Transaction uint64 // grows while the file is open
	Time        time.Time
	Changes     []Change
}

// CaptureOptions are for DB.Capture.
type CaptureOptions struct {
	// Limit is how many bytes of changes wait in memory before recording pauses.
	Limit int64
	// Now returns the time.
	Now func() time.Time
	// Wake is called after something was added. It must not wait.
	Wake func()
}

// ErrCaptured means that another Capture exists.
var ErrCaptured = errors.New("the changes of the metadata are captured already")

// Capture is a queue of what committed transactions changed, in their order. A
// change is in it before its Update returns.
//
// It has no gaps until it pauses: at the beginning, and when the queue is full. Then
// nothing more is recorded, and what is in the queue remains. Once Next has returned
// all of it, Resume begins anew, and a snapshot that is read afterwards (DB.Chunks)
// replaces what is missing.
type Capture struct {
	db      *DB
	options CaptureOptions

	mu      sync.Mutex
	queue   []Redo
	bytes   int64
	paused  bool
	since   time.Time // of the first change that is missing
	last    uint64    // the newest transaction that was recorded since Resume
	resumed uint64    // counts the calls of Resume
}

// Capture begins to capture changes, paused. Only one Capture can exist. The caller
// closes it.
func (db *DB) Capture(o CaptureOptions) (*Capture, error) {
	db.capturing.Lock()
	defer db.capturing.Unlock()
	if db.capture != nil {
		return nil, ErrCaptured
	}
	db.capture = &Capture{db: db, options: o, paused: true, since: o.Now()}
	return db.capture, nil
}

// Close ends the recording and empties the queue. Calling it twice is fine.
func (c *Capture) Close() {
	c.db.capturing.Lock()
	defer c.db.capturing.Unlock()
	if c.db.capture == c {
		c.db.capture = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused, c.queue, c.bytes, c.since = true, nil, 0, time.Time{}
}

// Next removes transactions from the queue and returns them: one, and those that follow
// it, up to about limit bytes and, unless it is zero, not after a time.
func (c *Capture) Next(limit int, until time.Time) []Redo {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, size := 0, int64(0)
	for n < len(c.queue) && (n == 0 || size < int64(limit) && (until.IsZero() || !c.queue[n].Time.After(until))) {
		size += c.queue[n].size()
		n++
	}
	next := c.queue[:n:n]
	c.queue = c.queue[n:]
	c.bytes -= size
	if len(c.queue) == 0 {
		c.queue = nil
	}
	return next
}

// CaptureStatus describes a Capture.
type CaptureStatus struct {
	Bytes  int64     // in the queue
	Oldest time.Time // of what is in the queue or, if nothing is, what is missing; else zero
	// Paused means that changes may be missing after those in the queue, and Empty that
	// none are in it.
	Paused, Empty bool
	// Resumed counts the calls of Resume. What was recorded between two equal states
	// that are not paused has no gap.
	Resumed uint64
	// Last is the newest transaction that was recorded since Resume, 0 for none.
	Last uint64
}

// Status returns a description of the moment.
func (c *Capture) Status() CaptureStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := CaptureStatus{Bytes: c.bytes, Paused: c.paused, Empty: len(c.queue) == 0, Resumed: c.resumed, Last: c.last}
	if !s.Empty {
		s.Oldest = c.queue[0].Time
	} else if s.Paused {
		s.Oldest = c.since
	}
	return s
}

// Resume ends a pause, after the queue was read. Every transaction that a read did not
// see before is recorded from now on.
func (c *Capture) Resume() {
	c.db.capturing.Lock()
	defer c.db.capturing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db.capture == c && c.paused && len(c.queue) == 0 {
		c.paused, c.since, c.last = false, time.Time{}, 0
		c.resumed++
	}
}

// Barrier returns when every transaction that a read saw before is in the queue.
func (c *Capture) Barrier() {
	c.db.capturing.Lock()
	defer c.db.capturing.Unlock()
}

// begin returns where a transaction records its changes, nil while nothing is recorded.
func (c *Capture) begin() *redo {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return nil
	}
	return &redo{limit: c.options.Limit}
}

// add adds a committed transaction.
func (c *Capture) add(transaction uint64, r *redo) {
	if r == nil || len(r.changes) == 0 && !r.over {
		return
	}
	c.mu.Lock()
	now := c.options.Now()
	if r.over || c.bytes+r.bytes > c.options.Limit {
		c.paused, c.since = true, now
	} else {
		c.queue = append(c.queue, Redo{transaction, now, r.changes})
		c.bytes += r.bytes
		c.last = transaction
	}
	c.mu.Unlock()
	c.options.Wake()
}

func (r Redo) size() (bytes int64) {
	for _, c := range r.Changes {
		bytes += c.size()
	}
	return bytes
}
