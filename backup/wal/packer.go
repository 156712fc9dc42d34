package wal

import (
	"slices"
	"sync"
	"time"
)

// packRetry is how long a segment that could not be compressed waits. Until
// then it stays as it came, which is as good.
const packRetry = 30 * time.Second

// packer compresses full segments in the background, in their order.
type packer struct {
	w    *Writer
	done chan struct{}

	mu     sync.Mutex
	queue  []packing
	err    error // why the first in the queue could not be compressed
	closed bool
	wake   *sync.Cond
}

type packing struct {
	key segmentKey
	sum *summary
}

func newPacker(w *Writer) *packer {
	p := &packer{w: w, done: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	go p.run()
	return p
}

// add queues a full segment, once.
func (p *packer) add(key segmentKey, sum *summary) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.ContainsFunc(p.queue, func(q packing) bool { return q.key == key }) {
		return
	}
	p.queue = append(p.queue, packing{key, sum})
	p.wake.Broadcast()
}

// run compresses until the packer is closed; what is left then is compressed
// when the archive is opened the next time.
func (p *packer) run() {
	defer close(p.done)
	for {
		next, ok := p.next()
		if !ok {
			return
		}
		p.settle(p.pack(next))
	}
}

// pack compresses a segment, unless that is done: it may have been queued again
// just then.
func (p *packer) pack(next packing) error {
	if s := p.w.archive.segment(p.w.branch, next.key); s != nil && s.compressed {
		return nil
	}
	return p.w.archive.compressSegment(p.w.branch, next.key, next.sum)
}

func (p *packer) next() (packing, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.wake.Wait()
	}
	if p.closed {
		return packing{}, false
	}
	return p.queue[0], true
}

// settle takes the first out of the queue, or lets it wait.
func (p *packer) settle(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	p.wake.Broadcast()
	if err == nil {
		p.queue = p.queue[1:]
		return
	}
	p.w.archive.log.Warn("a WAL segment could not be compressed, and stays as it is for now", "err", err)
	again := false
	timer := time.AfterFunc(packRetry, func() {
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

// wait returns when nothing is left to compress, or it cannot be done.
func (p *packer) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.err == nil && !p.closed {
		p.wake.Wait()
	}
}

func (p *packer) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *packer) close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Broadcast()
	p.mu.Unlock()
	<-p.done
}
