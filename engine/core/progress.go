package core

import "sync"

// Progress holds the progress of running operations and backups, in percent. Their
// end is recorded; their progress is not worth a sync.
type Progress struct{ percent sync.Map } // int by id

// Set records that done of total is done. It never reaches 100 percent: only the
// record of the end says that.
func (p *Progress) Set(id string, done, total int64) {
	if total > 0 {
		p.percent.Store(id, int(min(done*100/total, 99)))
	}
}

// Get returns the percentage of id, or otherwise if it is unknown.
func (p *Progress) Get(id string, otherwise int) int {
	if percent, ok := p.percent.Load(id); ok {
		return percent.(int)
	}
	return otherwise
}

func (p *Progress) Drop(id string) { p.percent.Delete(id) }

// Count returns the number of ids with recorded progress.
func (p *Progress) Count() (n int) {
	for range p.percent.Range {
		n++
	}
	return n
}
