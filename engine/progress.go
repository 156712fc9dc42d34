package engine

import "sync"

// progress holds how far running operations and backups are, in percent.
// Where they end is recorded; how far they are is not worth a sync.
type progress struct {
	mu      sync.Mutex
	percent map[string]int
}

func newProgress() *progress { return &progress{percent: map[string]int{}} }

// set notes that done of total is behind the thing with id. It never shows
// 100: only its end does.
func (p *progress) set(id string, done, total int64) {
	if total <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.percent[id] = int(min(done*100/total, 99))
}

// get returns the percentage of id, or otherwise when nothing is known.
func (p *progress) get(id string, otherwise int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if percent, ok := p.percent[id]; ok {
		return percent
	}
	return otherwise
}

func (p *progress) drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.percent, id)
}
