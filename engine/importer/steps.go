package importer

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// step is something to do, once what it needs is done.
type step struct {
	name   string
	weight float64
	do     func(context.Context, *worker) error // *pgconn.PgError when it is refused
	needs  []*step
	// table is what the step locks against others, 0 for nothing; shared
	// steps (indexes) leave each other in.
	table  int
	shared bool

	done bool
}

// errand runs steps on several workers, those of the most weight first. A step
// that is refused is told to flawed, and what needs it goes on: it will be
// refused itself, or not.
type errand struct {
	flawed   func(*step, error)
	finished func(*step)

	mu    sync.Mutex
	wake  *sync.Cond
	steps []*step
	held  map[int]int // locks on tables: -1 exclusive, else how many share it
	busy  int
	hands int // workers that have not retired
	err   error
}

func newErrand(steps []*step) *errand {
	r := &errand{steps: slices.Clone(steps), held: map[int]int{}}
	r.wake = sync.NewCond(&r.mu)
	slices.SortStableFunc(r.steps, func(a, b *step) int {
		switch {
		case a.weight > b.weight:
			return -1
		case a.weight < b.weight:
			return 1
		default:
			return 0
		}
	})
	return r
}

// run does every step and returns the first error after which nothing can go
// on. Each worker has one goroutine.
func (r *errand) run(ctx context.Context, workers []*worker) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.hands = len(workers)
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for s := r.next(); s != nil; s = r.next() {
				err := s.do(ctx, w)
				if _, ok := errors.AsType[sessionError](err); ok && ctx.Err() == nil && r.retire(s) {
					return
				}
				if err != nil && (ctx.Err() != nil || fatal(err)) {
					cancel(err)
					r.fail(err)
					return
				}
				if err != nil {
					r.flawed(s, err)
				}
				r.finish(s)
			}
		})
	}
	all.Wait()
	if r.err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // the first
	}
	return r.err
}

// next waits for a step whose turn it is and takes it; nil when there are no
// more.
func (r *errand) next() *step {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.err != nil || len(r.steps) == 0 && r.busy == 0 { // a step under way may be given back
			return nil
		}
		for i, s := range r.steps {
			if r.ready(s) {
				r.steps = slices.Delete(r.steps, i, i+1)
				r.lock(s)
				r.busy++
				return s
			}
		}
		if r.busy == 0 {
			r.err = errors.New("the definitions of the source need each other in a circle")
			r.wake.Broadcast()
			return nil
		}
		r.wake.Wait()
	}
}

func (r *errand) ready(s *step) bool {
	if held := r.held[s.table]; s.table != 0 && (held < 0 || held > 0 && !s.shared) {
		return false
	}
	return !slices.ContainsFunc(s.needs, func(n *step) bool { return !n.done })
}

func (r *errand) lock(s *step) {
	switch {
	case s.table == 0:
	case s.shared:
		r.held[s.table]++
	default:
		r.held[s.table] = -1
	}
}

func (r *errand) finish(s *step) {
	r.finished(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.done = true
	r.letGo(s)
}

// retire gives a step back to the other workers, for want of a session to do
// it in, and reports whether there are any.
func (r *errand) retire(s *step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hands == 1 {
		return false
	}
	r.hands--
	r.steps = slices.Insert(r.steps, 0, s)
	r.letGo(s)
	return true
}

func (r *errand) letGo(s *step) {
	r.busy--
	switch {
	case s.table == 0:
	case s.shared:
		r.held[s.table]--
	default:
		r.held[s.table] = 0
	}
	r.wake.Broadcast()
}

func (r *errand) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.busy--
	r.wake.Broadcast()
}
