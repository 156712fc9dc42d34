package engine

import (
	"fmt"
	"testing"
	"time"

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
		_, err := c.DeviceAuthorize(call, DeviceRequest{})
		return err
	}
	var err error
	for n := range visitorRates()[rateDeviceAuthorize].Limit + 1 {
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

// TestBudgetsAreForgotten: the budgets of visitors that do not come again do
// not pile up, and a crowd of new ones is not looked through for each.
func TestBudgetsAreForgotten(t *testing.T) {
	t.Parallel()
	const class = model.RateClass("visit")
	l := newRateLimiter(map[model.RateClass]Rate{class: {10, time.Minute}})
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
