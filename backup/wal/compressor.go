package wal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// compressRetry is the delay before compression of a segment is retried. Until then the segment stays partial, which
// is equally durable.
const compressRetry = 30 * time.Second

// compressor compresses the full segments of a writer's generation in the background, in order. It begins with what a
// crash or a copy left, in generations without a writer, too.
type compressor struct {
	archive *Archive
	branch  *branch
	full    chan struct{} // a segment is full
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu  sync.Mutex
	err error // of the last attempt
}

func newCompressor(a *Archive, b *branch) *compressor {
	ctx, stop := context.WithCancel(context.Background())
	p := &compressor{archive: a, branch: b, full: make(chan struct{}, 1), stop: stop}
	p.done.Go(func() { p.run(ctx) })
	return p
}

func (p *compressor) run(ctx context.Context) {
	p.compress(ctx)
	for _, b := range p.archive.unwritten() {
		p.archive.compressAll(ctx, b, func(error) {}) // the next writer tries again
	}
	for {
		var retry <-chan time.Time
		if p.failure() != nil {
			retry = time.After(compressRetry)
		}
		select {
		case <-p.full:
		case <-retry:
		case <-ctx.Done():
			return
		}
		p.compress(ctx)
	}
}

// wake triggers compression after a segment becomes full.
func (p *compressor) wake() {
	select {
	case p.full <- struct{}{}:
	default: // an attempt is already pending
	}
}

// compress compresses all full segments of the writer's generation.
func (p *compressor) compress(ctx context.Context) {
	p.archive.compressAll(ctx, p.branch, func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = err
	})
}

// wait returns when all full segments are compressed or one cannot be compressed.
func (p *compressor) wait() {
	if p.failure() == nil {
		p.compress(context.Background())
		if p.failure() != nil {
			p.wake() // run tries again, now and then
		}
	}
}

func (p *compressor) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *compressor) close() {
	p.stop()
	p.done.Wait()
}

// compressAll compresses all full segments of a generation, in order. It stops at the first failure, which it logs. outcome
// gets the error before another call begins, unless ctx ended.
func (a *Archive) compressAll(ctx context.Context, b *branch, outcome func(error)) {
	b.compressing.Lock()
	defer b.compressing.Unlock()
	var err error
	for _, key := range a.fullPartials(b) {
		if ctx.Err() != nil {
			return
		}
		if err = a.compressFull(b, key); err != nil {
			a.log.Warn("a WAL segment could not be compressed; it is tried again", "err", err)
			break
		}
	}
	outcome(err)
}

// unwritten returns the generations without a writer.
func (a *Archive) unwritten() (all []*branch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.branches {
		if b.writer == nil {
			all = append(all, b)
		}
	}
	return all
}

// fullPartials returns the full segments that are not compressed yet, in order.
func (a *Archive) fullPartials(b *branch) (keys []segmentKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, s := range b.segments {
		if !s.compressed && !s.damaged && s.end == b.limit(key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, segmentKey.compare)
	return keys
}

// compressFull compresses a full segment. A damaged segment stays as it is, and its readers get the error.
func (a *Archive) compressFull(b *branch, key segmentKey) (err error) {
	s := a.segment(b, key)
	if s == nil {
		return nil // pruned meanwhile
	}
	sum := s.summary
	if sum == nil {
		sum, err = a.summarizePartial(b, s)
	}
	if errors.Is(err, ErrGap) {
		a.log.Error("a full WAL segment is damaged and cannot be compressed", "err", err)
		s.damaged = true
		a.setSegment(b, s)
		return nil
	}
	if err != nil {
		return err
	}
	return a.compressSegment(b, key, sum)
}
