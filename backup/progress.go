package backup

// progressEvery is how many bytes pass between two calls of Progress.
const progressEvery = 1 << 20

// progress counts bytes and tells whoever wants to know, in the goroutine that
// does the work.
type progress struct {
	tell  func(doneBytes, totalBytes int64)
	total int64
	done  int64
	told  int64
}

func (p *progress) add(n int) {
	p.done += int64(n)
	if p.tell == nil || p.done-p.told < progressEvery {
		return
	}
	p.told = p.done
	p.tell(p.done, max(p.done, p.total))
}

// finish tells that all is done.
func (p *progress) finish() {
	if p.tell != nil {
		p.tell(p.done, p.done)
	}
}
