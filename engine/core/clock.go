package core

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
// for its age waits until the leap was there for ClockGrace of running.

const (
	// clockSlack is how far a clock may go astray without being wondered at.
	clockSlack = 24 * time.Hour
	// ClockGrace is for how long the appliance runs until it believes a clock
	// that has leapt.
	ClockGrace = 72 * time.Hour

	clockSetting = "clock"
)

// BelievedClock is a clock that does not leap: it goes with the machine's while
// that is plausible, and by the time that passes while it is not.
type BelievedClock struct {
	Time   time.Time     `json:"time"`
	Waited time.Duration `json:"waited_ns"` // of running, since the machine's leapt
}

// Ahead is by how much a clock is implausibly Ahead, 0 when it is not.
func (b BelievedClock) Ahead(now time.Time) time.Duration {
	if by := now.Sub(b.Time); by > clockSlack {
		return by
	}
	return 0
}

// After is the clock when the process has run on for passed, and the machine's
// says now. Leaps during a grace do not prolong it: a machine that is off every
// weekend would never come to its end. Nor does one that was set back begin
// another when it is right again.
func (b BelievedClock) After(passed time.Duration, now time.Time) BelievedClock {
	b.Time = b.Time.Add(passed)
	b.Waited += passed
	if off := now.Sub(b.Time); b.Waited >= ClockGrace || off.Abs() <= clockSlack {
		return BelievedClock{Time: now}
	}
	return b
}

// ClockGuard is what the engine knows of its clock.
type ClockGuard struct {
	Mu       sync.Mutex
	Believed BelievedClock
	Looked   time.Time // when that was so, for the time passed since
	told     bool      // that the clock has leapt
	KeepAll  time.Time // until then nothing is removed for its age: see recoverOlder
}

// loadClock reads how far the clock had come when the appliance last ran, and
// until when all is kept.
func (c *Core) loadClock() error {
	g := &c.Guard
	g.Looked = time.Now()
	return c.Meta.View(func(tx *meta.Tx) error {
		g.KeepAll = keepAllSetting(tx)
		if text := tx.Setting(clockSetting); len(text) > 0 {
			if err := json.Unmarshal(text, &g.Believed); err != nil {
				c.Log.Error("read how far the clock had come: it is taken for wrong at first", "error", err)
			}
			return nil
		}
		g.Believed.Time = c.WallClock()
		return nil
	})
}

// WallClock is what the machine's clock says, whatever has passed since.
func (c *Core) WallClock() time.Time { return c.Clock().Round(0) }

// KeepClock keeps durably how far the clock has come, and says so when it has
// leapt.
func (c *Core) KeepClock() error {
	g := &c.Guard
	g.Mu.Lock()
	defer g.Mu.Unlock()
	now := c.WallClock()
	passed := time.Since(g.Looked)
	g.Believed, g.Looked = g.Believed.After(passed, now), g.Looked.Add(passed)
	ahead := g.Believed.Ahead(now)
	if ahead > 0 && !g.told {
		c.Log.Warn("the clock is far ahead of where it was: it is wrong, or the machine was off; nothing is removed for its age until the appliance "+
			"has run on for so long, or the clock is set right", "ahead", ahead.Round(time.Minute), "clock", now, "run_on", ClockGrace-g.Believed.Waited)
	}
	if ahead == 0 && g.told {
		c.Log.Warn("the clock is believed again: what has outlived its time is removed", "clock", now)
	}
	g.told = ahead > 0
	text, err := json.Marshal(g.Believed)
	if err != nil {
		return fmt.Errorf("encode how far the clock has come: %w", err)
	}
	return c.Meta.Update(func(tx *meta.Tx) error { return tx.PutSetting(clockSetting, text) })
}

// ClockAhead is by how much the clock is ahead of where it can be, 0 when it is
// not, and for how long of running it is not believed yet.
func (c *Core) ClockAhead() (by, grace time.Duration) {
	g := &c.Guard
	g.Mu.Lock()
	defer g.Mu.Unlock()
	passed := time.Since(g.Looked)
	b := BelievedClock{Time: g.Believed.Time.Add(passed), Waited: g.Believed.Waited + passed}
	return b.Ahead(c.WallClock()), max(0, ClockGrace-b.Waited)
}

// KeepsAll reports whether nothing may be removed for its age: the clock is ahead
// of where it can be, or the metadata were older not long ago.
func (c *Core) KeepsAll() bool {
	c.Guard.Mu.Lock()
	keepAll := c.Guard.KeepAll
	c.Guard.Mu.Unlock()
	ahead, _ := c.ClockAhead()
	return ahead > 0 || c.Clock().Before(keepAll)
}

// MayRemove reports whether what was to be kept until a time may be removed for
// good.
func (c *Core) MayRemove(until time.Time) bool {
	return !c.Clock().Before(until) && !c.KeepsAll()
}

// OlderSetting has, in the metadata, until when that is.
const OlderSetting = "older_until"

// keepAllSetting returns until when nothing is removed for its age, zero when
// the metadata never were older.
func keepAllSetting(tx *meta.Tx) (until time.Time) {
	_ = until.UnmarshalText(tx.Setting(OlderSetting)) // none is there
	return until
}
