package importer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// step is one unit of work. It runs after the steps that it needs.
type step struct {
	name   string
	weight float64
	do     func(context.Context, *worker) error // *pgconn.PgError if the server refuses it
	needs  []*step
	// table is the table that the step locks, 0 for none. Shared steps
	// (indexes) may run at the same time.
	table  int
	shared bool

	done bool
}

// runner runs steps on several workers, the heaviest first. It reports a step that the server refuses to flawed, and
// still runs the steps that need it: they may succeed.
type runner struct {
	flawed   func(*step, error)
	finished func(*step)

	mu     sync.Mutex
	wake   *sync.Cond
	steps  []*step
	held   map[int]int // locks on tables: -1 exclusive, else the number of shared holders
	busy   int
	active int // workers that have not retired
	err    error
}

func newRunner(steps []*step) *runner {
	r := &runner{steps: slices.Clone(steps), held: map[int]int{}}
	r.wake = sync.NewCond(&r.mu)
	slices.SortStableFunc(r.steps, func(a, b *step) int { return cmp.Compare(b.weight, a.weight) })
	return r
}

// run runs every step and returns the first fatal error. Each worker has one
// goroutine.
func (r *runner) run(ctx context.Context, workers []*worker) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.active = len(workers)
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for s := r.next(); s != nil; s = r.next() {
				err := s.do(ctx, w)
				if _, ok := errors.AsType[sessionError](err); ok && ctx.Err() == nil && r.handBack(s) {
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

// next waits for a step that can run and takes it. It returns nil when there
// are no more.
func (r *runner) next() *step {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if r.err != nil || len(r.steps) == 0 && r.busy == 0 { // a running step may be returned
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
			r.err = errors.New("the definitions of the source depend on each other in a cycle")
			r.wake.Broadcast()
			return nil
		}
		r.wake.Wait()
	}
}

func (r *runner) ready(s *step) bool {
	if held := r.held[s.table]; s.table != 0 && (held < 0 || held > 0 && !s.shared) {
		return false
	}
	return !slices.ContainsFunc(s.needs, func(n *step) bool { return !n.done })
}

func (r *runner) lock(s *step) {
	switch {
	case s.table == 0:
	case s.shared:
		r.held[s.table]++
	default:
		r.held[s.table] = -1
	}
}

func (r *runner) finish(s *step) {
	r.finished(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.done = true
	r.release(s)
}

// handBack returns a step to the other workers because this one has no session to
// run it in. It reports whether there are other workers.
func (r *runner) handBack(s *step) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == 1 {
		return false
	}
	r.active--
	r.steps = slices.Insert(r.steps, 0, s)
	r.release(s)
	return true
}

func (r *runner) release(s *step) {
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

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	r.busy--
	r.wake.Broadcast()
}
