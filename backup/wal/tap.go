package wal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"holdfast/backup/wal/xlog"
)

// Piece is something that an archive has made durable: a part of the WAL, or a small file of a generation, whole.
type Piece struct {
	At         time.Time // when it was durable here, which is after the server acknowledged its commits
	Generation int

	Name    string // of the small file: the generation file or a history file; empty for WAL
	Content []byte

	Timeline uint32
	From     xlog.LSN // of the first byte of WAL
	Bytes    []byte
}

// Tap reads what an archive makes durable, for a copy elsewhere. It keeps positions only, and reads the archive's
// files. The archive does not wait for it: WAL that is pruned or damaged before it was read is left out, and what
// follows begins with a segment. It is safe for concurrent use, but only one goroutine may call Next.
type Tap struct {
	archive *Archive
	wake    func()

	mu      sync.Mutex
	streams map[timelineKey]*tapStream
	changes []tapChange // in order of time
	waiting int64       // bytes
	closed  bool
}

// timelineKey is a timeline of a generation.
type timelineKey struct {
	generation int
	timeline   uint32
}

// tapStream is how far a timeline is durable, and how far it was read.
type tapStream struct{ read, end xlog.LSN }

// tapChange says that the WAL of a timeline is durable up to end or, with a name, that a small file was published.
type tapChange struct {
	at time.Time
	// since is a time before which no commit of the WAL was acknowledged, zero if none is known.
	since time.Time
	timelineKey
	end  xlog.LSN
	name string
}

const (
	// coalesceWithin is the time within which WAL counts as durable at the same moment.
	coalesceWithin = 100 * time.Millisecond
	// maxTapChanges bounds what a tap remembers while nobody reads it, for hours of uninterrupted writing.
	maxTapChanges = 4096
)

// Sent is what a copy has when a tap begins.
type Sent struct {
	// End returns the end of the WAL of a timeline in the copy, false if it has none.
	End func(generation int, timeline uint32) (end xlog.LSN, some bool)
	// Rest means that the copy gets the files of the archive too: of a timeline of which it has none, the tap then begins
	// with the newest segment.
	Rest bool
	// At is the moment that the copy has: what it lacks counts as durable since then, as it is not known since when it
	// is.
	At time.Time
}

// Tap returns a tap. It begins with every small file, and with the WAL of each timeline where the copy ends or, if the
// copy has none of it, with a segment: a copy takes none from the middle on. wake is called when something was added to
// nothing. It must not block.
func (a *Archive) Tap(sent Sent, wake func()) *Tap {
	t := &Tap{archive: a, wake: wake, streams: map[timelineKey]*tapStream{}}
	if sent.At.IsZero() {
		sent.At = time.Now()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.branches {
		t.begin(b, sent)
	}
	slices.SortStableFunc(t.changes, func(x, y tapChange) int { return x.at.Compare(y.at) })
	if a.closed {
		t.end()
	} else {
		a.taps[t] = true
	}
	return t
}

// begin adds the small files of a generation, and the WAL that the copy lacks.
func (t *Tap) begin(b *branch, sent Sent) {
	at := time.Now()
	var behind []tapChange
	for _, timeline := range b.timelines() {
		key, end := timelineKey{b.number, timeline}, b.end(timeline)
		from, some := sent.End(b.number, timeline)
		switch {
		case !some && sent.Rest:
			from = end - end%xlog.LSN(b.info().SegmentSize)
		case !some:
			from = b.start(b.of(timeline)[0].segmentKey)
		}
		from = min(from, end)
		t.streams[key] = &tapStream{from, end}
		if t.waiting += int64(end - from); end > from {
			at = sent.At
			behind = append(behind, tapChange{at: at, timelineKey: key, end: end})
		}
	}
	for _, name := range b.smallFiles() {
		t.changes = append(t.changes, tapChange{at: at, timelineKey: timelineKey{generation: b.number}, name: name})
	}
	t.changes = append(t.changes, behind...)
}

// smallFiles returns the names of the files beside the segments.
func (b *branch) smallFiles() []string {
	names := []string{generationFile}
	for timeline := range b.histories {
		names = append(names, xlog.HistoryName(timeline))
	}
	slices.Sort(names)
	return names
}

// grew tells the taps that a segment is durable up to end, and since when its commits may have been acknowledged. The caller
// holds mu.
func (a *Archive) grew(b *branch, key segmentKey, end xlog.LSN, since time.Time) {
	for t := range a.taps {
		t.grew(timelineKey{b.number, key.timeline}, b.start(key), end, since)
	}
}

// published tells the taps that a small file of a generation was published. The caller holds mu.
func (a *Archive) published(b *branch, name string) {
	for t := range a.taps {
		t.add(tapChange{at: time.Now(), timelineKey: timelineKey{generation: b.number}, name: name})
	}
}

func (t *Tap) grew(key timelineKey, start, end xlog.LSN, since time.Time) {
	t.mu.Lock()
	s := t.streams[key]
	if s == nil {
		s = &tapStream{start, start}
		t.streams[key] = s
	}
	t.waiting += int64(end - s.end)
	s.end = end
	t.mu.Unlock()
	t.add(tapChange{at: time.Now(), since: since, timelineKey: key, end: end})
}

func (t *Tap) add(c tapChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if n := len(t.changes); n > 0 && t.changes[n-1].covers(c, coalesceWithin) {
		t.changes[n-1].end = c.end
		return
	}
	t.changes = append(t.changes, c)
	if len(t.changes) > maxTapChanges {
		t.changes = coalesce(t.changes)
	}
	if len(t.changes) == 1 {
		t.wake()
	}
}

// covers reports whether c is about the same WAL, at most a time later.
func (c tapChange) covers(next tapChange, within time.Duration) bool {
	return c.name == "" && next.name == "" && c.timelineKey == next.timelineKey && next.at.Sub(c.at) < within
}

// coalesce joins pairs of changes. The first one stays, because Next may be reading it.
func coalesce(changes []tapChange) []tapChange {
	kept := changes[:1]
	for i := 1; i < len(changes); i++ {
		c := changes[i]
		if i+1 < len(changes) && c.covers(changes[i+1], 1<<62) {
			i++
			c.end = changes[i].end
		}
		kept = append(kept, c)
	}
	return kept
}

// Waiting returns how many bytes Next would return, and since when the first of them is durable, the zero time if
// there are none.
func (t *Tap) Waiting() (bytes int64, oldest time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changes) == 0 {
		return 0, time.Time{}
	}
	return t.waiting, t.changes[0].at
}

// Since returns a time before which no commit was acknowledged whose WAL Next would return, zero if none is known. It
// reports false if Next would return no WAL.
func (t *Tap) Since() (since time.Time, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.changes {
		if c.name == "" {
			return c.since, true
		}
	}
	return time.Time{}, false
}

// Read returns up to where Next has returned the WAL of a timeline, false if the tap does not know the timeline.
func (t *Tap) Read(generation int, timeline uint32) (end xlog.LSN, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.streams[timelineKey{generation, timeline}]
	if s == nil {
		return 0, false
	}
	return s.read, true
}

// Close ends the tap: Next returns nothing more. Close is idempotent.
func (t *Tap) Close() {
	t.archive.mu.Lock()
	delete(t.archive.taps, t)
	t.archive.mu.Unlock()
	t.end()
}

func (t *Tap) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed, t.changes, t.waiting = true, nil, 0
}

// Next returns about limit bytes, at least one piece if there is one, and after the first only pieces that are not
// after until, unless that is zero. After an error it continues where it was.
func (t *Tap) Next(limit int, until time.Time) (pieces []Piece, err error) {
	for size := 0; size < limit; {
		c, from, some := t.head()
		if !some || len(pieces) > 0 && !until.IsZero() && c.at.After(until) {
			break
		}
		p, to, err := t.archive.piece(c, from, limit-size)
		if err != nil && len(pieces) > 0 {
			break // it is returned next time
		}
		if err != nil {
			return nil, err
		}
		t.advance(c, to)
		if len(p.Bytes)+len(p.Content) > 0 {
			pieces = append(pieces, p)
			size += len(p.Bytes) + len(p.Content)
		}
	}
	return pieces, nil
}

// head returns the first change, and from where its WAL is to be read.
func (t *Tap) head() (c tapChange, from xlog.LSN, some bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.changes) == 0 {
		return c, 0, false
	}
	c = t.changes[0]
	if s := t.streams[c.timelineKey]; c.name == "" {
		from = s.read
	}
	return c, from, true
}

// advance removes a small file that was read, or notes up to where WAL was.
func (t *Tap) advance(c tapChange, to xlog.LSN) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if c.name == "" {
		s := t.streams[c.timelineKey]
		to = min(max(to, s.read), s.end)
		t.waiting -= int64(to - s.read)
		s.read = to
	}
	if first := t.changes[0]; first.name != "" || first.end <= to {
		t.changes = slices.Delete(t.changes, 0, 1)
	}
}

// piece reads a change from a position on, at most limit bytes of WAL. It returns the position after it, which may
// be after a piece of nothing.
func (a *Archive) piece(c tapChange, from xlog.LSN, limit int) (Piece, xlog.LSN, error) {
	p := Piece{At: c.at, Generation: c.generation, Timeline: c.timeline}
	a.mu.Lock()
	b := a.branches[c.generation]
	a.mu.Unlock()
	if c.name != "" {
		var err error
		p.Name = c.name
		p.Content, err = os.ReadFile(filepath.Join(b.dir, c.name))
		if notExist(err) {
			err = nil // the archive was removed meanwhile
		}
		return p, 0, err
	}
	for {
		s, at := a.following(b, c.timeline, from)
		if s == nil || at >= c.end {
			return p, c.end, nil
		}
		to := min(c.end, s.end, at+xlog.LSN(limit))
		bytes, err := a.readSegment(b, s, at, to)
		if lostSegment(err) {
			if now := a.segment(b, s.segmentKey); now == nil || now.compressed == s.compressed {
				from = b.limit(s.segmentKey) // pruned, or damaged
			}
			continue
		}
		p.From, p.Bytes = at, bytes
		return p, to, err
	}
}

// lostSegment reports whether an error means that reading again does not help.
func lostSegment(err error) bool {
	return errors.Is(err, errDamaged) || notExist(err) || errors.Is(err, syscall.EIO)
}

// following returns the segment that has WAL from a position on, and the position: that or, if it is missing, the
// start of a later segment.
func (a *Archive) following(b *branch, timeline uint32, from xlog.LSN) (found *segment, at xlog.LSN) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := b.info().SegmentSize
	if s := b.segments[segmentKey{timeline, uint64(from) / size}]; s != nil && s.end > from {
		copied := *s
		return &copied, from
	}
	for key, s := range b.segments {
		if start := b.start(key); key.timeline == timeline && start > from && s.end > start && (found == nil || start < at) {
			copied := *s
			found, at = &copied, start
		}
	}
	return found, at
}

// readSegment reads the part of a segment between two positions.
func (a *Archive) readSegment(b *branch, s *segment, from, to xlog.LSN) ([]byte, error) {
	if !s.compressed {
		return b.readPartialAt(s.segmentKey, from, to)
	}
	read := make([]byte, 0, to-from)
	err := a.streamSegment(b, s, from, to, func(_ xlog.LSN, piece []byte) error {
		if read = append(read, piece...); len(read) == cap(read) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return read, err
}

func (b *branch) readPartialAt(key segmentKey, from, to xlog.LSN) ([]byte, error) {
	f, err := os.Open(b.path(key, partialSuffix))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	read := make([]byte, to-from)
	if n, err := f.ReadAt(read, int64(from-b.start(key))); n < len(read) {
		return nil, errors.Join(damagedf("its partial file is too short"), err)
	}
	return read, nil
}
