package stream

import (
	"context"
	"sync"
	"time"
)

// Source is a stream of changes that are durable on the machine: the writer reads
// them when it can send them, so that what waits for the store takes no memory. The
// writer calls the methods of a Source from one goroutine, but Stored and Waiting
// from others too.
//
// A Source calls Writer.Wake when it has something after it had nothing. It calls no
// other method of the Writer from Stored and Waiting.
type Source interface {
	// Next returns the frames that follow those it returned before: about max bytes
	// of content but at least one frame, each at most MaxFrame encoded, and after the first only
	// frames that are not after a time, unless that is zero. It returns none
	// when nothing follows yet. The writer calls it again after an error, but never for frames that it
	// returned: those are stored sooner or later, or the Writer ends.
	Next(ctx context.Context, max int, until time.Time) ([]Frame, error)
	// Stored says that the store has the first n frames of those that Next returned
	// since the Writer was opened. n grows.
	Stored(n uint64)
	// Waiting describes what Next would return. It is called often and does no I/O.
	Waiting() Waiting
}

// Named is a Source that says which stream it is a part of. The status has the lag of each stream.
type Named interface {
	Source
	Stream() Stream
}

// Stream names what several sources have together: a kind of data and, if it belongs to one, a database.
type Stream struct{ Kind, Owner string }

func streamOf(s Source) Stream {
	if n, ok := s.(Named); ok {
		return n.Stream()
	}
	return Stream{}
}

// Waiting is what a Source has for the Writer.
type Waiting struct {
	Bytes  int64     // that Next would return, about
	Later  int64     // bytes that cannot be returned yet, as of a file that is being stored
	Oldest time.Time // of the first frame, zero if there is none
	// Since is a time before which nothing was acknowledged that waits, zero if that is Oldest. It is earlier where a change
	// is acknowledged before it reaches the Source.
	Since time.Time
}

// since returns the time before which nothing was acknowledged that waits, zero if nothing waits.
func (w Waiting) since() time.Time {
	if w.Oldest.IsZero() || w.Since.IsZero() {
		return w.Oldest
	}
	return earlier(w.Since, w.Oldest)
}

// share is how many bytes are read from one source before another one may be older.
const share = 1 << 20

// input is a Source and what the Writer knows of it.
type input struct {
	source Source

	mu      sync.Mutex
	removed bool
	frames  uint64    // that Next returned
	last    time.Time // of the newest of them
	broken  error     // Next returned what no log object can have
}

// read appends the next frames to a log object, with times that do not go back and are not before least, and
// returns how many: one, and those that follow it and are not after a time. Frames that no object can have end the input: leaving them out
// would be a hole in the log.
func (i *input) read(ctx context.Context, to *logBuilder, until, least time.Time) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken != nil || i.removed {
		return 0, i.broken
	}
	frames, err := i.source.Next(ctx, min(share, maxLog-len(to.plain)), until)
	if err != nil {
		return 0, err
	}
	if i.last.Before(least) {
		i.last = least
	}
	for n, f := range frames {
		if f.Time = f.Time.Round(0); f.Time.Before(i.last) { // by what is stored, not by the monotonic clock
			f.Time = i.last
		}
		if i.broken = to.add(f); i.broken != nil {
			return n, i.broken
		}
		i.last = f.Time
		i.frames++
	}
	return len(frames), nil
}

// remove ends the input. It waits for a read that is under way.
func (i *input) remove() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removed = true
}
