package core

import "sync"

// Progress holds how far running operations and backups are, in percent.
// Where they end is recorded; how far they are is not worth a sync.
type Progress struct{ percent sync.Map } // int by the id

// Set records how much of total is done. It never becomes 100 percent: only the
// record of the end says that.
func (p *Progress) Set(id string, done, total int64) {
	if total > 0 {
		p.percent.Store(id, int(min(done*100/total, 99)))
	}
}

// Get returns the percentage of id, or otherwise when nothing is known.
func (p *Progress) Get(id string, otherwise int) int {
	if percent, ok := p.percent.Load(id); ok {
		return percent.(int)
	}
	return otherwise
}

func (p *Progress) Drop(id string) { p.percent.Delete(id) }

// Count returns how many things have a recorded progress.
func (p *Progress) Count() (n int) {
	for range p.percent.Range {
		n++
	}
	return n
}
