package core

import (
	"sync"
)

// Progress holds how far running operations and backups are, in percent.
// Where they end is recorded; how far they are is not worth a sync.
type Progress struct {
	mu      sync.Mutex
	percent map[string]int
}

func NewProgress() *Progress { return &Progress{percent: map[string]int{}} }

// Set notes that done of total is behind the thing with id. It never shows
// 100: only its end does.
func (p *Progress) Set(id string, done, total int64) {
	if total <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.percent[id] = int(min(done*100/total, 99))
}

// Get returns the percentage of id, or otherwise when nothing is known.
func (p *Progress) Get(id string, otherwise int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if percent, ok := p.percent[id]; ok {
		return percent
	}
	return otherwise
}

func (p *Progress) Drop(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.percent, id)
}

// Count returns how many things have a recorded progress.
func (p *Progress) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.percent)
}
