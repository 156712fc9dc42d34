package blobstore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// tapPiece is the maximum size of the bytes of a Change.
	tapPiece = 1 << 20
	// tapHeld bounds the removed segments and files that are kept open until the Tap has read them, in bytes, and
	// tapHeldFiles their number.
	tapHeld      = 256 << 20
	tapHeldFiles = 256
	// tapChanges bounds the changes that wait with a time of their own. Beyond it, successive ones share the later's, and
	// removals of files are forgotten.
	tapChanges = 1 << 15
)

// Tap reads what becomes durable in a Store, for a copy elsewhere: the bytes of the journal, the files that are published,
// and what is removed. What waits stays on the disk. A Tap keeps a limited amount of what is removed before it was read.
// It is safe for concurrent use.
type Tap struct {
	store *Store
	wake  func()

	reading sync.Mutex // held by Next

	mu       sync.Mutex
	changes  []tapChange
	thinAt   int   // the number of changes beyond which they are thinned out
	unread   int64 // bytes of the journal
	segments map[uint32]*os.File
	held     map[any]int64 // sizes of what is kept open after its removal, by segment or Ref
	bodies   []*Body       // that wait to be taken, oldest first
	taken    []*Body       // that are not done
	pending  map[Ref]*Body // both
	uncopied int64         // bytes of them
	changed  chan struct{} // closed when one is done
	closed   bool
}

// tapChange is a change whose bytes, if it has any, are still in a file.
type tapChange struct {
	at        int64 // Unix time in nanoseconds
	removed   Ref   // a file that was removed
	segment   uint32
	from, end int64 // the new bytes; of a segment that was dropped, and of a file, both 0
}

// Change is a change of the store. The times of successive changes never go back, and each is before the Deliver of its
// records.
type Change struct {
	Time time.Time
	// Segment has the new Bytes at From, or was dropped if there are none.
	Segment uint32
	From    int64
	Bytes   []byte
	// Removed is the Ref of a file that was removed, "" for a change of the journal. A Tap that is not read for long forgets
	// removals: Walk tells which files are there.
	Removed Ref
}

// Tap begins to follow the store, in the journal from a position on: of 0, from the beginning of the segment that is
// being written. wake is called when there is something new, and must not block. Only one Tap may be open. The caller
// closes it.
func (s *Store) Tap(from Position, wake func()) (*Tap, error) {
	t := &Tap{
		store: s, wake: wake, segments: map[uint32]*os.File{}, pending: map[Ref]*Body{}, held: map[any]int64{},
		changed: make(chan struct{}), thinAt: tapChanges,
	}
	err := s.journal.group.alone(func() error {
		if !s.tap.CompareAndSwap(nil, t) {
			return errors.New("it is tapped already")
		}
		current := s.journal.current
		if from == 0 {
			from = PositionOf(s.journal.last+1, 0)
			if current != nil {
				from = PositionOf(current.number, 0)
			}
		}
		for _, number := range s.journal.numbers.list() {
			size := int64(0)
			if current != nil && current.number == number {
				size = current.offset()
			} else if info, err := os.Stat(s.journal.path(number)); err == nil {
				size = info.Size()
			}
			first := int64(0)
			if number == from.Segment() {
				first = from.offset()
			}
			if number >= from.Segment() && first < size {
				t.add(tapChange{segment: number, from: first, end: size})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("tap blob store: %w", err)
	}
	return t, nil
}

// Close ends the Tap, which has nothing more.
func (t *Tap) Close() {
	t.store.tap.CompareAndSwap(t, nil)
	t.reading.Lock()
	defer t.reading.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for _, f := range t.segments {
		_ = f.Close()
	}
	for _, b := range t.bodies {
		b.drop()
	}
	t.changes, t.bodies, t.taken, t.unread, t.uncopied = nil, nil, nil, 0, 0
	clear(t.segments)
	clear(t.pending)
	close(t.changed)
}

// Segment is the durable part of a segment of the journal. Its bytes never change. Mark tells it from another one of that
// number in another copy of the store.
type Segment struct {
	Number   uint32
	Mark     string
	Size     int64
	Complete bool  // nothing is added to it
	Err      error // why it cannot be read: then its Mark is unknown, and its Size may be
}

// Journal returns the segments of the journal as they are now, oldest first. It leaves out those that are gone.
func (s *Store) Journal() (segments []Segment) {
	var numbers []uint32
	var current uint32
	var size int64
	_ = s.journal.group.alone(func() error {
		numbers = s.journal.numbers.list()
		if c := s.journal.current; c != nil {
			current, size = c.number, c.offset()
		}
		return nil
	})
	for _, number := range numbers {
		segment := Segment{Number: number, Size: size, Complete: number != current}
		segment.Err = s.describe(&segment)
		if errors.Is(segment.Err, ErrNotFound) || segment.Err == nil && segment.Size < int64(segmentHeader) {
			continue
		}
		segments = append(segments, segment)
	}
	return segments
}

// describe reads the mark of a segment and, if it is complete, its size.
func (s *Store) describe(segment *Segment) error {
	f, err := openSegment(s.journal.path(segment.Number))
	if err != nil {
		return err
	}
	defer f.Close()
	if segment.Complete {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		segment.Size = info.Size()
	}
	read := &segmentFile{ReaderAt: f, number: segment.Number}
	if err := read.readMark(); err != nil {
		return err
	}
	segment.Mark = fmt.Sprintf("%x", read.mark)
	return nil
}

// OpenSegment opens a segment, for a caller that reads durable bytes of it. It returns ErrNotFound if the segment was dropped.
// The caller closes it.
func (s *Store) OpenSegment(number uint32) (*os.File, error) {
	return openSegment(s.journal.path(number))
}

// add appends a change of now.
func (t *Tap) add(c tapChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.append(c)
}

// append is add for a caller that holds the lock.
func (t *Tap) append(c tapChange) {
	if t.closed {
		return
	}
	c.at = time.Now().UnixNano()
	if n := len(t.changes); n > 0 {
		c.at = max(c.at, t.changes[n-1].at)
	}
	t.unread += c.end - c.from
	t.changes = append(t.changes, c)
	if len(t.changes) > t.thinAt {
		t.changes = thin(t.changes)
		t.thinAt = max(tapChanges, 2*len(t.changes))
	}
	t.wake()
}

// thin forgets the removals of files, and merges pairs of successive changes of a segment. Each gets the later time. The
// first change stays, because Next may be reading it.
func thin(changes []tapChange) (kept []tapChange) {
	merged := true
	for i, c := range changes {
		if i > 0 && c.removed != "" {
			continue
		}
		if n := len(kept); !merged && c.end > 0 && kept[n-1].end == c.from && kept[n-1].segment == c.segment {
			kept[n-1].at, kept[n-1].end, merged = c.at, c.end, true
			continue
		}
		kept, merged = append(kept, c), c.end == 0
	}
	return kept
}

// Waiting returns how many bytes Next would return, and the time of the first change, zero if there is none.
func (t *Tap) Waiting() (bytes int64, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changes) > 0 {
		oldest = time.Unix(0, t.changes[0].at)
	}
	return t.unread, oldest
}

// Next returns the changes that follow: about limit bytes but at least one change, and after that only changes that are not
// after until, unless that is zero. It returns none if there is none. After an error it can be called again.
func (t *Tap) Next(limit int, until time.Time) (changes []Change, err error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	for bytes := 0; bytes < limit; {
		c, ok := t.first()
		if !ok || len(changes) > 0 && !until.IsZero() && c.at > until.UnixNano() {
			return changes, nil
		}
		change := Change{Time: time.Unix(0, c.at), Segment: c.segment, From: c.from, Removed: c.removed}
		if c.end > 0 {
			change.Bytes, err = t.read(c)
			switch {
			case errors.Is(err, ErrNotFound): // removed, and too much to be kept
				t.advance(c.end)
				continue
			case err != nil && len(changes) > 0:
				return changes, nil // the next call reports it, if it lasts
			case err != nil:
				return nil, err
			}
		}
		bytes += len(change.Bytes)
		t.advance(c.from + int64(len(change.Bytes)))
		changes = append(changes, change)
	}
	return changes, nil
}

func (t *Tap) first() (tapChange, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changes) == 0 {
		return tapChange{}, false
	}
	return t.changes[0], true
}

// read returns the first bytes of a change.
func (t *Tap) read(c tapChange) ([]byte, error) {
	f, err := t.open(c.segment)
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(c.end-c.from, tapPiece))
	if _, err := f.ReadAt(b, c.from); err != nil {
		return nil, fmt.Errorf("read journal segment: %w", err)
	}
	return b, nil
}

// open returns a segment, which stays open until something else was read.
func (t *Tap) open(segment uint32) (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.segments[segment]; f != nil {
		return f, nil
	}
	f, err := openSegment(t.store.journal.path(segment))
	if err == nil {
		t.segments[segment] = f
	}
	return f, err
}

// advance notes that the first change was read up to an offset. It closes its segment if no other bytes of it wait.
func (t *Tap) advance(to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.changes[0]
	if c.end > 0 {
		t.unread -= to - c.from
		if c.from = to; to < c.end {
			return
		}
	}
	done := c.segment
	t.changes = t.changes[1:]
	if t.segments[done] == nil || len(t.changes) > 0 && t.changes[0].segment == done || t.held[done] > 0 && t.waits(done) {
		return
	}
	_ = t.segments[done].Close()
	delete(t.segments, done)
	delete(t.held, done)
}

// keep reports whether something that is about to be removed may be kept open, and counts it.
func (t *Tap) keep(what any, size int64) bool {
	sum := size
	for _, held := range t.held {
		sum += held
	}
	if sum > tapHeld || len(t.held) >= tapHeldFiles {
		return false
	}
	t.held[what] = size
	return true
}

// waits reports whether bytes of a segment were not read.
func (t *Tap) waits(segment uint32) bool {
	return slices.ContainsFunc(t.changes, func(c tapChange) bool { return c.segment == segment && c.end > 0 })
}

// dropping is called before a segment is removed: what waits in it remains readable.
func (t *Tap) dropping(segment uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.waits(segment) {
		return
	}
	f := t.segments[segment]
	if f == nil {
		var err error
		if f, err = openSegment(t.store.journal.path(segment)); err != nil {
			return
		}
	}
	info, err := f.Stat()
	if err == nil && t.keep(segment, info.Size()) {
		t.segments[segment] = f
		return
	}
	_ = f.Close()
	delete(t.segments, segment)
}
