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

// readLog returns a log object.
func (r *Repository) readLog(ctx context.Context, e Epoch, seq uint64) (*logObject, error) {
	key := e.logKey(seq)
	b, err := r.get(ctx, key, logHead+maxLogPlain+1<<16)
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
		var reads sync.WaitGroup
		defer reads.Wait()
		defer cancel()
		next, queue := after+1, []chan fetched{}
		for {
			for ; len(queue) < readAhead; next++ {
				s, err := h.spanOf(ctx, next)
				if err != nil {
					yield(nil, err)
					return
				}
				queue = append(queue, h.fetch(ctx, &reads, s, next))
			}
			f := <-queue[0]
			queue = queue[1:]
			if f.err != nil && f.last && errors.Is(f.err, objectstore.ErrNotFound) {
				return
			}
			if f.err == nil && f.log.header.previous != hash {
				f.err = corrupt("log object %d does not follow the one before", f.log.header.seq)
			}
			if !yield(f.log, f.err) || f.err != nil {
				return
			}
			hash = f.log.hash
		}
	}
}

// fetched is a log object that was read, or why not. last means that the newest
// epoch may end before it.
type fetched struct {
	log  *logObject
	err  error
	last bool
}

func (h *History) fetch(ctx context.Context, reads *sync.WaitGroup, s *span, seq uint64) chan fetched {
	result := make(chan fetched, 1)
	e, last := s.claim.Epoch, s.newest
	reads.Go(func() {
		l, err := h.repo.readLog(ctx, e, seq)
		result <- fetched{l, err, last}
	})
	return result
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
			for _, f := range l.frames {
				if !until.IsZero() && f.Time.After(until) {
					continue
				}
				if !yield(f, nil) {
					return
				}
			}
			if l.header.seq >= last {
				return
			}
		}
	}
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
