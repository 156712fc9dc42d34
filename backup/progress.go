package backup

import "sync"

// progressEvery is the number of bytes between two calls of Progress.
const progressEvery = 1 << 20

// progress counts bytes and reports them with serialized calls of tell.
type progress struct {
	tell func(doneBytes, totalBytes int64)

	mu    sync.Mutex
	total int64
	done  int64
	told  int64
}

// expect raises the total.
func (p *progress) expect(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.tell == nil || p.done-p.told < progressEvery {
		return
	}
	p.told = p.done
	p.tell(p.done, max(p.done, p.total))
}

// finish reports completion.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tell != nil {
		p.tell(max(p.done, 1), max(p.done, 1))
	}
}
