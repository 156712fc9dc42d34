package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestThrottleTakesANetworkForOneVisitor: whoever has one IPv6 address has
// 2^64 of them.
func TestThrottleTakesANetworkForOneVisitor(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	from := func(address string) error {
		call := c.visitor(model.ActionDeviceAuthorize)
		call.IP = address
		return c.Core.ThrottleVisitor(call)
	}
	var err error
	for n := range core.VisitorRates()[core.RateDeviceAuthorize].Limit + 1 {
		err = from(fmt.Sprintf("2001:db8:0:1::%x", n))
	}
	if model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("one network may ask without end: %v", err)
	}
	for _, other := range []string{"2001:db8:0:2::1", "192.0.2.1", "::ffff:192.0.2.2", "fe80::1%eth0", ""} {
		if err := from(other); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// TestBudgetHoldsInAnyWindow: however the requests are spread, no window has
// more than the limit, and whoever waits as long as he is told gets the next.
func TestBudgetHoldsInAnyWindow(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	r := core.Rate{Limit: 30, Window: time.Minute}
	l := core.NewRateLimiter(map[model.RateClass]core.Rate{class: r})
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var admitted []time.Time
	for range 3000 {
		err := l.Take("one", class, now)
		if refused, ok := errors.AsType[*model.Error](err); ok {
			if refused.RetryAfter <= 0 || refused.RetryAfter > r.Window {
				t.Fatalf("to be asked again in %s", refused.RetryAfter)
			}
			if err := l.Take("one", class, now.Add(refused.RetryAfter-1)); err == nil {
				t.Fatalf("admitted sooner than it was told, %s", refused.RetryAfter)
			}
			now = now.Add(refused.RetryAfter)
			if err := l.Take("one", class, now); err != nil {
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

// TestBudgetsAreForgotten: the budgets of visitors that do not come again do
// not pile up, and a crowd of new ones is not looked through for each.
func TestBudgetsAreForgotten(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	l := core.NewRateLimiter(map[model.RateClass]core.Rate{class: {Limit: 10, Window: time.Minute}})
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	visit := func(n int) {
		if err := l.Take(fmt.Sprint(n), class, now); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 * core.MaxBudgets {
		visit(n)
	}
	if l.SweepAt < 2*core.MaxBudgets || l.SweepAt > 20*core.MaxBudgets {
		t.Errorf("with %d budgets that are in use, the next look through them is at %d", len(l.Budgets), l.SweepAt)
	}
	now = now.Add(time.Hour)
	for n := range 20 * core.MaxBudgets {
		now = now.Add(time.Minute)
		visit(n)
	}
	if len(l.Budgets) > 2*core.MaxBudgets {
		t.Errorf("%d budgets are kept of visitors that are gone", len(l.Budgets))
	}
}
