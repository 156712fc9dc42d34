package wal

import (
	"slices"
	"sync"
	"time"
)

// compressRetry is the delay before another attempt to compress a segment.
// Until then the segment stays partial, which is just as durable.
const compressRetry = 30 * time.Second

// compressor compresses full segments in the background, in order.
type compressor struct {
	w    *Writer
	done chan struct{}

	mu     sync.Mutex
	queue  []compression
	err    error // of the last attempt at the first in the queue
	closed bool
	wake   *sync.Cond
}

type compression struct {
	key segmentKey
	sum *summary
}

func newCompressor(w *Writer) *compressor {
	p := &compressor{w: w, done: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	go p.run()
	return p
}

// add queues a full segment unless it is queued.
func (p *compressor) add(key segmentKey, sum *summary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.queue, func(q compression) bool { return q.key == key }) {
		return
	}
	p.queue = append(p.queue, compression{key, sum})
	p.wake.Broadcast()
}

// run compresses segments until the compressor is closed. What is left then is
// compressed when the archive is opened again.
func (p *compressor) run() {
	defer close(p.done)
	for {
		next, ok := p.next()
		if !ok {
			return
		}
		p.finished(p.compress(next))
	}
}

// compress compresses a segment unless it is compressed: it may have been
// queued again meanwhile.
func (p *compressor) compress(next compression) error {
	if s := p.w.archive.segment(p.w.branch, next.key); s != nil && s.compressed {
		return nil
	}
	return p.w.archive.compressSegment(p.w.branch, next.key, next.sum)
}

func (p *compressor) next() (compression, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.wake.Wait()
	}
	if p.closed {
		return compression{}, false
	}
	return p.queue[0], true
}

// finished removes the first in the queue, or waits for the next attempt.
func (p *compressor) finished(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	p.wake.Broadcast()
	if err == nil {
		p.queue = p.queue[1:]
		return
	}
	p.w.archive.log.Warn("a WAL segment could not be compressed; it is tried again", "err", err)
	again := false
	timer := time.AfterFunc(compressRetry, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		again = true
		p.wake.Broadcast()
	})
	defer timer.Stop()
	for waiting := len(p.queue); !again && !p.closed && len(p.queue) == waiting; {
		p.wake.Wait()
	}
}

// wait returns when the queue is empty or the first in it cannot be compressed.
func (p *compressor) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.err == nil && !p.closed {
		p.wake.Wait()
	}
}

func (p *compressor) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *compressor) close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	<-p.done
}
