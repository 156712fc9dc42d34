package engine

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"holdfast/engine/meta"
)

// A clock that leaps ahead makes everything old that is kept for a time. It may
// be wrong, as one is that a machine comes up with until it has asked for the
// time; or the machine was off. Nothing can tell at once, so what is removed
// for its age waits until the leap was there for clockGrace of running.

const (
	// clockSlack is how far a clock may go astray without being wondered at.
	clockSlack = 24 * time.Hour
	// clockGrace is for how long the appliance runs until it believes a clock
	// that has leapt.
	clockGrace = 72 * time.Hour

	clockSetting = "clock"
)

// believedClock is a clock that does not leap: it goes with the machine's while
// that is plausible, and by the time that passes while it is not.
type believedClock struct {
	Time   time.Time     `json:"time"`
	Waited time.Duration `json:"waited_ns"` // of running, since the machine's leapt
}

// ahead is by how much a clock is implausibly ahead, 0 when it is not.
func (b believedClock) ahead(now time.Time) time.Duration {
	if by := now.Sub(b.Time); by > clockSlack {
		return by
	}
	return 0
}

// after is the clock when the process has run on for passed, and the machine's
// says now. Leaps during a grace do not prolong it: a machine that is off every
// weekend would never come to its end. Nor does one that was set back begin
// another when it is right again.
func (b believedClock) after(passed time.Duration, now time.Time) believedClock {
	b.Time = b.Time.Add(passed)
	b.Waited += passed
	if off := now.Sub(b.Time); b.Waited >= clockGrace || off.Abs() <= clockSlack {
		return believedClock{Time: now}
	}
	return b
}

// clockGuard is what the engine knows of its clock.
type clockGuard struct {
	mu       sync.Mutex
	believed believedClock
	looked   time.Time // when that was so, for the time passed since
	told     bool      // that the clock has leapt
	keepAll  time.Time // until then nothing is removed for its age: see settleOlder
}

// loadClock reads how far the clock had come when the appliance last ran, and
// until when all is kept.
func (e *Engine) loadClock() error {
	g := &e.guard
	g.looked = time.Now()
	return e.meta.View(func(tx *meta.Tx) error {
		g.keepAll = keepAllSetting(tx)
		if text := tx.Setting(clockSetting); len(text) > 0 {
			if err := json.Unmarshal(text, &g.believed); err != nil {
				e.log.Error("read how far the clock had come: it is taken for wrong at first", "error", err)
			}
			return nil
		}
		g.believed.Time = e.wallClock()
		return nil
	})
}

// wallClock is what the machine's clock says, whatever has passed since.
func (e *Engine) wallClock() time.Time { return e.clock().Round(0) }

// keepClock keeps durably how far the clock has come, and says so when it has
// leapt.
func (e *Engine) keepClock() error {
	g := &e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	now := e.wallClock()
	passed := time.Since(g.looked)
	g.believed, g.looked = g.believed.after(passed, now), g.looked.Add(passed)
	ahead := g.believed.ahead(now)
	if ahead > 0 && !g.told {
		e.log.Warn("the clock is far ahead of where it was: it is wrong, or the machine was off; nothing is removed for its age until the appliance "+
			"has run on for so long, or the clock is set right", "ahead", ahead.Round(time.Minute), "clock", now, "run_on", clockGrace-g.believed.Waited)
	}
	if ahead == 0 && g.told {
		e.log.Warn("the clock is believed again: what has outlived its time is removed", "clock", now)
	}
	g.told = ahead > 0
	text, err := json.Marshal(g.believed)
	if err != nil {
		return fmt.Errorf("encode how far the clock has come: %w", err)
	}
	return e.meta.Update(func(tx *meta.Tx) error { return tx.PutSetting(clockSetting, text) })
}

// clockAhead is by how much the clock is ahead of where it can be, 0 when it is
// not, and for how long of running it is not believed yet.
func (e *Engine) clockAhead() (by, grace time.Duration) {
	g := &e.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := time.Since(g.looked)
	b := believedClock{Time: g.believed.Time.Add(passed), Waited: g.believed.Waited + passed}
	return b.ahead(e.wallClock()), max(0, clockGrace-b.Waited)
}

// keepsAll reports whether nothing may be removed for its age: the clock is ahead
// of where it can be, or the metadata were older not long ago.
func (e *Engine) keepsAll() bool {
	e.guard.mu.Lock()
	keepAll := e.guard.keepAll
	e.guard.mu.Unlock()
	ahead, _ := e.clockAhead()
	return ahead > 0 || e.clock().Before(keepAll)
}

// mayRemove reports whether what was to be kept until a time may be removed for
// good.
func (e *Engine) mayRemove(until time.Time) bool {
	return !e.clock().Before(until) && !e.keepsAll()
}
