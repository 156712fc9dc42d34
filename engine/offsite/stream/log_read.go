package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"holdfast/internal/objectstore"
)

// logObject is one object of the log.
type logObject struct {
	header logHeader
	frames []Frame
	hash   Hash
}

// readLog returns a log object. That it is not found is what the store says: see ahead.again.
func (r *Repository) readLog(ctx context.Context, e Epoch, seq uint64) (*logObject, error) {
	key := e.logKey(seq)
	b, err := reread(func() ([]byte, error) { return r.getOnce(ctx, key, logHead+maxLogPlain+1<<16) })
	if err != nil {
		return nil, fmt.Errorf("read log object %s: %w", key, err)
	}
	l := &logObject{hash: blake3.Sum256(b)}
	if l.header, l.frames, err = decodeLog(r.zstd, b); err == nil && l.header.seq != seq {
		err = corrupt("it is number %d", l.header.seq)
	}
	if err != nil {
		return nil, fmt.Errorf("read log object %s: %w", key, err)
	}
	return l, nil
}

// readAhead is how many log objects are read at once.
const readAhead = 4

// logs yields the log objects after one, in order, each verified to follow the one
// before. It ends without an error where the newest epoch has no further object.
func (h *History) logs(ctx context.Context, after uint64, hash Hash) iter.Seq2[*logObject, error] {
	return func(yield func(*logObject, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		a := &ahead{history: h, ctx: ctx, next: after + 1}
		defer a.reads.Wait()
		defer cancel()
		for {
			l, err := a.log(hash)
			if l == nil && err == nil || !yield(l, err) || err != nil {
				return
			}
			hash = l.hash
		}
	}
}

// ahead reads several log objects at once.
type ahead struct {
	history *History
	ctx     context.Context //nolint:containedctx // of the iteration
	reads   sync.WaitGroup
	next    uint64 // the first that is not being read
	queue   []chan fetched
}

// fetched is a log object that was read, or why not. last means that the newest
// epoch may end before it.
type fetched struct {
	epoch Epoch
	seq   uint64
	log   *logObject
	err   error
	last  bool
}

// log returns the next log object, nil after the last.
func (a *ahead) log(previous Hash) (*logObject, error) {
	for len(a.queue) < readAhead {
		if err := a.fetch(); err != nil {
			return nil, err
		}
	}
	f := <-a.queue[0]
	a.queue = a.queue[1:]
	if errors.Is(f.err, objectstore.ErrNotFound) {
		f.log, f.err = a.again(f)
	}
	switch {
	case f.last && errors.Is(f.err, objectstore.ErrNotFound):
		return nil, nil //nolint:nilnil // the end
	case f.err != nil:
		return nil, f.err
	case f.log.header.previous != previous:
		return nil, corrupt("log object %d does not follow the one before", f.log.header.seq)
	}
	return f.log, nil
}

// again reads a log object that was not found again, as long as the store has it. Where later ones of the newest epoch exist, it
// waits for it, too: what follows would be lost for good by a claim that cuts the log here.
func (a *ahead) again(f fetched) (*logObject, error) {
	h, key := a.history, f.epoch.logKey(f.seq)
	for paused := 0; ; paused++ {
		err := h.repo.confirmMissing(a.ctx, key, paused, f.err)
		if f.last && errors.Is(err, objectstore.ErrNotFound) {
			err = h.awaitLost(a.ctx, f.seq, paused, err)
		}
		if err != nil {
			return nil, err
		}
		if f.log, f.err = h.repo.readLog(a.ctx, f.epoch, f.seq); !errors.Is(f.err, objectstore.ErrNotFound) {
			return f.log, f.err
		}
	}
}

// fetch begins to read one more.
func (a *ahead) fetch() error {
	s, err := a.history.spanOf(a.ctx, a.next)
	if err != nil {
		return err
	}
	result, seq := make(chan fetched, 1), a.next
	a.reads.Go(func() {
		l, err := a.history.repo.readLog(a.ctx, s.claim.Epoch, seq)
		result <- fetched{s.claim.Epoch, seq, l, err, s.newest}
	})
	a.next, a.queue = a.next+1, append(a.queue, result)
	return nil
}

// Frames yields the frames of the log after the position of a checkpoint, or from the
// first one on for nil. With a time, it leaves out frames after it, and ends where none
// before it can follow. Every object is verified before its first frame is yielded.
// An error that wraps ErrCorrupt, or another of a damaged object, ends the log there.
func (h *History) Frames(ctx context.Context, c *Checkpoint, until time.Time) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		start := &Checkpoint{}
		if c != nil {
			start = c
		}
		last, err := h.lastBefore(ctx, until)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		if last <= start.Replay {
			return
		}
		for l, err := range h.logs(ctx, start.Replay, start.Hash) {
			if err != nil {
				yield(Frame{}, err)
				return
			}
			if !l.yield(yield, until) || l.header.seq >= last {
				return
			}
		}
	}
}

// yield yields the frames that are not after a time, unless that is zero.
func (l *logObject) yield(yield func(Frame, error) bool, until time.Time) bool {
	for _, f := range l.frames {
		if !until.IsZero() && f.Time.After(until) {
			continue
		}
		f.Log = l.header.seq
		if !yield(f, nil) {
			return false
		}
	}
	return true
}

// lastBefore returns the log object after which no frame is at or before a time: a
// checkpoint follows everything before its time.
func (h *History) lastBefore(ctx context.Context, until time.Time) (uint64, error) {
	last := uint64(math.MaxUint64)
	if until.IsZero() {
		return last, nil
	}
	for p, err := range h.Points(ctx) {
		if err != nil {
			return 0, err
		}
		if !p.Time.After(until) {
			break
		}
		last = p.Through
	}
	return last, nil
}
