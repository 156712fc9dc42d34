package core

import (
	"fmt"
	"math"
	"sync"
	"time"

	"holdfast/engine/model"
)

// RateLimiter holds the budgets of callers. It drops unused budgets, so that memory
// does not grow with the number of callers ever seen.
type RateLimiter struct {
	rates map[model.RateClass]Rate

	mu      sync.Mutex
	budgets map[budgetKey]budget
	sweepAt int // number of budgets at which unused ones are dropped
}

type budgetKey struct {
	owner string
	class model.RateClass
}

// A budget keeps the time of each request as long as there are at most exactRequests. Beyond that it divides
// its window into budgetParts parts, and the requests of a part count as made at the time of the last one: so
// memory does not grow with the limit, and no window ever has more requests than the limit.
const exactRequests, budgetParts = 64, 10

// budget holds the requests that were admitted, oldest first, in at most exactRequests+budgetParts+2 parts.
type budget []budgetPart

// budgetPart is a number of requests, made from first to last.
type budgetPart struct {
	first, last time.Time
	requests    int
}

// since returns the requests after a time.
func (b budget) since(at time.Time) budget {
	for len(b) > 0 && !b[0].last.After(at) {
		b = b[1:]
	}
	return b
}

func (b budget) requests() (n int) {
	for _, part := range b {
		n += part.requests
	}
	return n
}

// add adds a request in a part of its own, or to the last one if there are many and that began not long ago.
func (b budget) add(now time.Time, window time.Duration) budget {
	if last := len(b) - 1; last >= exactRequests-1 && now.Sub(b[last].first) < window/budgetParts {
		b[last].last = now
		b[last].requests++
		return b
	}
	return append(b, budgetPart{now, now, 1})
}

// maxBudgets is the number of budgets at which unused ones are dropped for the first
// time.
const maxBudgets = 4096

// newRateLimiter returns a limiter in which every budget is unused.
func newRateLimiter(rates map[model.RateClass]Rate) *RateLimiter {
	return &RateLimiter{rates: rates, budgets: map[budgetKey]budget{}, sweepAt: maxBudgets}
}

// take draws one request from owner's budget, or returns a rate_limited error that
// says when the next one is available.
func (l *RateLimiter) take(owner string, class model.RateClass, now time.Time) error {
	return l.TakeAll(owner, []model.RateClass{class}, now)
}

// TakeAll draws one request from each of owner's budgets, or from none of them: the
// error names the first exhausted one.
func (l *RateLimiter) TakeAll(owner string, classes []model.RateClass, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, class := range classes {
		if err := l.check(budgetKey{owner, class}, now); err != nil {
			return err
		}
	}
	for _, class := range classes {
		if _, limited := l.rates[class]; limited {
			l.draw(budgetKey{owner, class}, now)
		}
	}
	return nil
}

// State returns the state of owner's budgets, without those that have no limit.
func (l *RateLimiter) State(owner string, classes []model.RateClass, now time.Time) (budgets []model.Budget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, class := range classes {
		rate, limited := l.rates[class]
		if !limited {
			continue
		}
		b := model.Budget{Class: class, Limit: rate.Limit, Window: rate.Window, Left: rate.Limit}
		if used := l.budgets[budgetKey{owner, class}].since(now.Add(-rate.Window)); len(used) > 0 {
			b.Left, b.More = max(0, rate.Limit-used.requests()), used[0].last.Add(rate.Window).Sub(now)
		}
		budgets = append(budgets, b)
	}
	return budgets
}

// draw takes one request from a budget that is not exhausted.
func (l *RateLimiter) draw(key budgetKey, now time.Time) {
	used, known := l.budgets[key]
	if !known {
		l.dropUnused(now)
	}
	window := l.rates[key.class].Window
	l.budgets[key] = used.since(now.Add(-window)).add(now, window)
}

// check returns a rate_limited error if the budget is exhausted.
func (l *RateLimiter) check(key budgetKey, now time.Time) error {
	r, limited := l.rates[key.class]
	used := l.budgets[key].since(now.Add(-r.Window))
	if !limited || used.requests() < r.Limit {
		return nil
	}
	delay := used[0].last.Add(r.Window).Sub(now)
	return &model.Error{
		Code: model.CodeRateLimited,
		Message: fmt.Sprintf("more than %d requests of %s in %s; try again in %.0f s",
			r.Limit, key.class, r.Window, math.Ceil(delay.Seconds())),
		RetryAfter: delay,
	}
}

// dropUnused drops unused budgets if there are many. The next sweep is due only at
// twice the remaining number, so that concurrent callers do not each scan all.
func (l *RateLimiter) dropUnused(now time.Time) {
	if len(l.budgets) < l.sweepAt {
		return
	}
	for key, b := range l.budgets {
		if len(b.since(now.Add(-l.rates[key.class].Window))) == 0 {
			delete(l.budgets, key)
		}
	}
	l.sweepAt = max(maxBudgets, 2*len(l.budgets))
}
