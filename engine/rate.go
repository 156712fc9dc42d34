package engine

import (
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"holdfast/engine/model"
)

// rateLimiter holds every key's budgets. Budgets that are full again are
// forgotten, so that memory does not grow with the keys ever seen.
type rateLimiter struct {
	rates map[model.RateClass]Rate

	mu      sync.Mutex
	budgets map[budgetKey]*rate.Limiter
	sweepAt int // how many budgets there are when the full ones are dropped
}

type budgetKey struct {
	owner string
	class model.RateClass
}

// maxBudgets is how many budgets are kept before the full ones are dropped
// for the first time.
const maxBudgets = 4096

func newRateLimiter(rates map[model.RateClass]Rate) *rateLimiter {
	return &rateLimiter{rates: rates, budgets: map[budgetKey]*rate.Limiter{}, sweepAt: maxBudgets}
}

// take draws one request from owner's budget, or returns a rate_limited error
// that says when there is one again.
func (l *rateLimiter) take(owner string, class model.RateClass, now time.Time) error {
	budget, limited := l.rates[class]
	if class == model.RateNone || !limited {
		return nil
	}
	reservation := l.budget(budgetKey{owner, class}, budget, now).ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay <= 0 {
		return nil
	}
	reservation.CancelAt(now)
	return &model.Error{
		Code: model.CodeRateLimited,
		Message: fmt.Sprintf("more than %d requests of %s in %s; try again in %.0f s",
			budget.Limit, class, budget.Window, math.Ceil(delay.Seconds())),
		RetryAfter: delay,
	}
}

func (l *rateLimiter) budget(key budgetKey, r Rate, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.budgets[key]; ok {
		return b
	}
	if len(l.budgets) >= l.sweepAt {
		l.dropFull(now)
		// Not sooner than after as many again: each of a crowd would have
		// all others looked through.
		l.sweepAt = max(maxBudgets, 2*len(l.budgets))
	}
	b := rate.NewLimiter(rate.Every(r.Window/time.Duration(r.Limit)), r.Limit)
	l.budgets[key] = b
	return b
}

func (l *rateLimiter) dropFull(now time.Time) {
	for key, b := range l.budgets {
		if b.TokensAt(now) >= float64(b.Burst()) {
			delete(l.budgets, key)
		}
	}
}
