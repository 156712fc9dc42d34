package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/engine/model"
)

// TestBudgetHoldsInAnyWindow: however the requests are spread, no window has more than the
// limit, and a caller that waits for RetryAfter gets the next one.
func TestBudgetHoldsInAnyWindow(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	r := Rate{Limit: 30, Window: time.Minute}
	l := newRateLimiter(map[model.RateClass]Rate{class: r})
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var admitted []time.Time
	for range 3000 {
		err := l.take("one", class, now)
		if refused, ok := errors.AsType[*model.Error](err); ok {
			if refused.RetryAfter <= 0 || refused.RetryAfter > r.Window {
				t.Fatalf("to be asked again in %s", refused.RetryAfter)
			}
			if err := l.take("one", class, now.Add(refused.RetryAfter-1)); err == nil {
				t.Fatalf("admitted sooner than it was told, %s", refused.RetryAfter)
			}
			now = now.Add(refused.RetryAfter)
			if err := l.take("one", class, now); err != nil {
				t.Fatalf("refused when it was told to come: %v", err)
			}
		}
		admitted = append(admitted, now)
		now = now.Add(time.Duration(random.Int64N(int64(3 * time.Second))))
	}
	for i := r.Limit; i < len(admitted); i++ {
		if took := admitted[i].Sub(admitted[i-r.Limit]); took < r.Window {
			t.Fatalf("%d requests in %s", r.Limit+1, took)
		}
	}
}

// TestBudgetsAreSmall: what a budget needs does not grow with its limit.
func TestBudgetsAreSmall(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	l := newRateLimiter(map[model.RateClass]Rate{class: {Limit: 6000, Window: time.Minute}})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 60_000 {
		if err := l.take("one", class, now); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		if b := l.budgets[budgetKey{"one", class}]; len(b) > exactRequests+budgetParts+2 || cap(b) > 4*exactRequests {
			t.Fatalf("after %d requests the budget has %d parts, and space for %d", n, len(b), cap(b))
		}
		now = now.Add(12 * time.Millisecond)
	}
}

// TestBudgetsAreForgotten: the budgets of visitors that do not return are dropped, and a
// large number of new ones does not cause a scan for each.
func TestBudgetsAreForgotten(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	l := newRateLimiter(map[model.RateClass]Rate{class: {Limit: 10, Window: time.Minute}})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	visit := func(n int) {
		if err := l.take(fmt.Sprint(n), class, now); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 * maxBudgets {
		visit(n)
	}
	if l.sweepAt < 2*maxBudgets || l.sweepAt > 20*maxBudgets {
		t.Errorf("with %d budgets that are in use, the next look through them is at %d", len(l.budgets), l.sweepAt)
	}
	now = now.Add(time.Hour)
	for n := range 20 * maxBudgets {
		now = now.Add(time.Minute)
		visit(n)
	}
	if len(l.budgets) > 2*maxBudgets {
		t.Errorf("%d budgets are kept of visitors that are gone", len(l.budgets))
	}
}

// TestRateAtItsLimit: a client that keeps exactly to a limit is never refused.
func TestRateAtItsLimit(t *testing.T) {
	t.Parallel()
	l := newRateLimiter(map[model.RateClass]Rate{"few": {12, time.Hour}})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 100 {
		if err := l.take("one", "few", now.Add(time.Duration(n)*5*time.Minute)); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
	}
	if err := l.take("one", "few", now.Add(99*5*time.Minute)); err == nil {
		t.Error("a 13th request within the hour was admitted")
	}
}
