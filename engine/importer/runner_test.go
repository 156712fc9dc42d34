package importer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestRunnerOrder runs many random plans: each step runs after the steps that it needs, and no two steps that conflict
// hold a table at the same time.
func TestRunnerOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		done, at := map[string]bool{}, map[int][]bool{}
		var steps []*step
		for i := range 1 + random.IntN(30) {
			s := &step{name: fmt.Sprint(i), weight: float64(random.IntN(4)), table: random.IntN(4), shared: random.IntN(2) == 0}
			for _, earlier := range steps {
				if random.IntN(6) == 0 {
					s.needs = append(s.needs, earlier)
				}
			}
			refused := random.IntN(5) == 0
			s.do = func(context.Context, *worker) error {
				mu.Lock()
				for _, n := range s.needs {
					if !done[n.name] {
						t.Errorf("seed %d: %s runs before %s", seed, s.name, n.name)
					}
				}
				if s.table != 0 && len(at[s.table]) > 0 && (!s.shared || slices.Contains(at[s.table], false)) {
					t.Errorf("seed %d: %s is not alone at table %d", seed, s.name, s.table)
				}
				at[s.table] = append(at[s.table], s.shared)
				mu.Unlock()
				mu.Lock()
				at[s.table] = at[s.table][:len(at[s.table])-1]
				done[s.name] = true
				mu.Unlock()
				if refused { // steps that need it still run
					return &pgconn.PgError{Code: "42501"}
				}
				return nil
			}
			steps = append(steps, s)
		}
		if random.IntN(2) == 0 {
			random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		}
		// One worker has no session; the other workers run its steps.
		lost := random.IntN(4)
		workers := make([]*worker, 1+random.IntN(4))
		for i := range workers {
			workers[i] = &worker{}
		}
		for _, s := range steps {
			do := s.do
			s.do = func(ctx context.Context, w *worker) error {
				if len(workers) > 1 && lost == 0 && w == workers[0] {
					return sessionError{&pgconn.PgError{Code: "08P01"}}
				}
				return do(ctx, w)
			}
		}
		r := newRunner(steps)
		r.flawed, r.finished = func(*step, error) {}, func(*step) {}
		if err := r.run(t.Context(), workers); err != nil || len(done) != len(steps) {
			t.Fatalf("seed %d: %d of %d steps, %v", seed, len(done), len(steps), err)
		}
	}
}

// TestRunnerEnds: after a fatal error no step starts, and a cycle is reported.
func TestRunnerEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("the connection is lost")
	first := &step{name: "first", weight: 2, do: func(context.Context, *worker) error { return broken }}
	waiting := &step{name: "waiting", weight: 1, do: func(ctx context.Context, _ *worker) error { <-ctx.Done(); return context.Cause(ctx) }}
	after := &step{name: "after", needs: []*step{first}, do: func(context.Context, *worker) error { t.Error("it goes on"); return nil }}
	r := newRunner([]*step{first, waiting, after})
	r.flawed, r.finished = func(*step, error) {}, func(*step) {}
	if err := r.run(t.Context(), make([]*worker, 2)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	a, b := &step{name: "a"}, &step{name: "b"}
	a.needs, b.needs = []*step{b}, []*step{a}
	r = newRunner([]*step{a, b})
	if err := r.run(t.Context(), make([]*worker, 2)); err == nil {
		t.Error("a circle is done")
	}
}
