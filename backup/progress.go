package backup

import "time"

// progressEvery is how often a caller hears of progress at most.
const progressEvery = 100 * time.Millisecond

// progress counts bytes and tells whoever wants to know, from the goroutine
// that does the work.
type progress struct {
	tell  func(doneBytes, totalBytes int64)
	total int64
	done  int64
	last  time.Time
}

func (p *progress) add(n int) {
	p.done += int64(n)
	if p.tell == nil || time.Since(p.last) < progressEvery {
		return
	}
	p.last = time.Now()
	p.tell(p.done, max(p.done, p.total))
}

// finish tells that all is done.
func (p *progress) finish() {
	if p.tell != nil {
		p.tell(p.done, p.done)
	}
}
