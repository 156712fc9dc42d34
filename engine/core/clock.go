package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/engine/meta"
)

// A clock that leaps ahead makes everything with a retention period look old. It may
// be wrong, as some machines' clocks are until the first time synchronization, or
// the machine was off. At first these cannot be told apart, so removal for age waits
// until the appliance has run for ClockGrace since the leap.

const (
	// clockSlack is the largest deviation of a clock that is plausible.
	clockSlack = 24 * time.Hour
	// ClockGrace is how long the appliance runs before it believes a clock that has
	// leapt.
	ClockGrace = 72 * time.Hour
	// OlderGrace is how long nothing is removed for its age after a start with older metadata.
	OlderGrace = 72 * time.Hour

	clockSetting = "clock"
)

// BelievedClock is a clock that does not leap: it follows the machine's clock while
// that is plausible, and otherwise advances with elapsed time.
type BelievedClock struct {
	Time   time.Time     `json:"time"`
	Waited time.Duration `json:"waited_ns"` // running time since the machine's clock leapt
}

// Ahead returns by how much now is implausibly ahead, 0 if it is plausible.
func (b BelievedClock) Ahead(now time.Time) time.Duration {
	if by := now.Sub(b.Time); by > clockSlack {
		return by
	}
	return 0
}

// After returns the clock after the process has run for passed, when the machine's
// clock says now. Leaps during a grace period do not prolong it: a machine that is
// off every weekend would never reach its end. A clock that was set back and is then
// corrected does not start another.
func (b BelievedClock) After(passed time.Duration, now time.Time) BelievedClock {
	b.Time = b.Time.Add(passed)
	b.Waited += passed
	if off := now.Sub(b.Time); b.Waited >= ClockGrace || off.Abs() <= clockSlack {
		return BelievedClock{Time: now}
	}
	return b
}

// ClockGuard is the engine's knowledge of its clock.
type ClockGuard struct {
	Mu        sync.Mutex
	Believed  BelievedClock
	UpdatedAt time.Time // when Believed was updated, to measure the time elapsed since
	logged    bool      // the leap was logged
	KeepAll   time.Time // nothing is removed for its age before then: see recoverOlder
}

// loadClock reads how far the clock had advanced when the appliance last ran, and
// until when everything is kept.
func (c *Core) loadClock() error {
	g := &c.Guard
	g.UpdatedAt = time.Now()
	return c.Meta.View(func(tx *meta.Tx) error {
		g.KeepAll = keepAllSetting(tx)
		if text := tx.Setting(clockSetting); len(text) > 0 {
			if err := json.Unmarshal(text, &g.Believed); err != nil {
				c.Log.Error("read the last known time: the clock is not trusted at first", "error", err)
			}
			return nil
		}
		g.Believed.Time = c.WallClock()
		return nil
	})
}

// IsPast reports whether an interval has passed since a moment. One that is ahead was noted by a wrong clock.
func IsPast(now, since time.Time, interval time.Duration) bool {
	return now.Before(since) || now.Sub(since) >= interval
}

// IsDue reports whether what is postponed to a moment, by longest at most, is due. A moment further ahead was set by a wrong
// clock.
func IsDue(now, notBefore time.Time, longest time.Duration) bool {
	return !now.Before(notBefore) || notBefore.Sub(now) > longest
}

// WallClock returns the machine's clock without its monotonic reading.
func (c *Core) WallClock() time.Time { return c.Clock().Round(0) }

// KeepClock stores durably how far the clock has advanced, and logs a leap.
func (c *Core) KeepClock() error {
	text, err := json.Marshal(c.advanceClock())
	if err != nil {
		return fmt.Errorf("encode the last known time: %w", err)
	}
	return c.Meta.Update(func(tx *meta.Tx) error { return tx.PutSetting(clockSetting, text) })
}

func (c *Core) advanceClock() BelievedClock {
	g := &c.Guard
	g.Mu.Lock()
	defer g.Mu.Unlock()
	now := c.WallClock()
	passed := time.Since(g.UpdatedAt)
	g.Believed, g.UpdatedAt = g.Believed.After(passed, now), g.UpdatedAt.Add(passed)
	ahead := g.Believed.Ahead(now)
	if ahead > 0 && !g.logged {
		c.Log.Warn("the clock is far ahead of where it was: it is wrong, or the machine was off; nothing is removed for its age until the appliance "+
			"has run on for so long, or the clock is set right", "ahead", ahead.Round(time.Minute), "clock", now, "run_on", ClockGrace-g.Believed.Waited)
	}
	if ahead == 0 && g.logged {
		c.Log.Warn("the clock is trusted again: what has expired is removed", "clock", now)
	}
	g.logged = ahead > 0
	return g.Believed
}

// ClockAhead returns by how much the clock is implausibly ahead, 0 if it is not, and
// how much longer the appliance must run before it believes it.
func (c *Core) ClockAhead() (by, grace time.Duration) {
	g := &c.Guard
	g.Mu.Lock()
	defer g.Mu.Unlock()
	passed := time.Since(g.UpdatedAt)
	b := BelievedClock{Time: g.Believed.Time.Add(passed), Waited: g.Believed.Waited + passed}
	return b.Ahead(c.WallClock()), max(0, ClockGrace-b.Waited)
}

// RetentionClock returns the time from which a retention period is counted: that of the machine's clock, or the believed
// one while the clock is behind that. What is deleted while the clock is wrong is not removed once the clock is right.
func (c *Core) RetentionClock() time.Time {
	now, believed := c.WallClock(), c.believed()
	if now.Sub(believed) < -clockSlack {
		return believed
	}
	return now
}

// Extended returns until when something is kept that was kept until then, and now is for that long from now on. A clock that is
// set back does not shorten that, unless it was far ahead before.
func (c *Core) Extended(until time.Time, kept time.Duration) time.Time {
	next := c.RetentionClock().Add(kept)
	if by := until.Sub(next); by > 0 && by <= clockSlack {
		return until
	}
	return next
}

// WasAhead reports whether only a clock that was ahead can have set until when something is kept, where that is for so long from
// its last change on.
func (c *Core) WasAhead(until time.Time, kept time.Duration) bool {
	return until.Sub(c.RetentionClock().Add(kept)) > clockSlack
}

// Redate has what WasAhead says of records with these ids, if it still does, be kept for that long from now on.
func Redate[T any](c *Core, table func(*meta.Tx) meta.Table[T], ids []string, until func(*T) *time.Time, kept time.Duration) error {
	if len(ids) == 0 {
		return nil
	}
	return c.Meta.Update(func(tx *meta.Tx) error {
		for _, id := range ids {
			err := table(tx).Change(id, func(record *T) {
				if at := until(record); c.WasAhead(*at, kept) {
					*at = c.RetentionClock().Add(kept)
				}
			})
			if err != nil && !errors.Is(err, meta.ErrNotFound) {
				return fmt.Errorf("date again what a clock that was ahead has dated: %w", err)
			}
		}
		return nil
	})
}

// LockClock returns the time by which the retention of locked versions ends: that of the machine's clock, or the believed one
// while the clock is implausibly ahead of that.
func (c *Core) LockClock() time.Time {
	now, believed := c.WallClock(), c.believed()
	if (BelievedClock{Time: believed}).Ahead(now) > 0 {
		return believed
	}
	return now
}

// IsPlausible reports whether a moment is not implausibly ahead of the time that the appliance believes.
func (c *Core) IsPlausible(at time.Time) bool {
	return BelievedClock{Time: c.believed()}.Ahead(at) == 0
}

// believed returns the time that the appliance believes.
func (c *Core) believed() time.Time {
	g := &c.Guard
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return g.Believed.Time.Add(time.Since(g.UpdatedAt))
}

// KeepsAll reports whether nothing may be removed for its age: the clock is
// implausibly ahead, or an older copy of the metadata was restored recently.
func (c *Core) KeepsAll() bool {
	c.Guard.Mu.Lock()
	keepAll := c.Guard.KeepAll
	c.Guard.Mu.Unlock()
	ahead, _ := c.ClockAhead()
	return ahead > 0 || c.Clock().Before(keepAll)
}

// RemovableBefore returns the time before which what is kept for that long has expired, and whether anything may be removed
// for its age. Every batch of a removal asks again.
func (c *Core) RemovableBefore(kept time.Duration) (before time.Time, ok bool) {
	before = c.Clock().Add(-kept) // first: what a leap of the clock in between makes look old stays
	return before, !c.KeepsAll()
}

// KeepsUnknown reports whether the metadata may lack what was there before an older copy of them was restored recently:
// what no record refers to is kept then, so that a newer copy can be put back.
func (c *Core) KeepsUnknown() bool {
	c.Guard.Mu.Lock()
	restored := !c.Guard.KeepAll.IsZero()
	c.Guard.Mu.Unlock()
	return restored && c.KeepsAll()
}

// MayRemove reports whether something with a retention period until that time may be
// removed permanently.
func (c *Core) MayRemove(until time.Time) bool {
	return !c.Clock().Before(until) && !c.KeepsAll()
}

// OlderSetting is the setting with the time until which everything is kept.
const OlderSetting = "older_until"

// KeepAllUntil has nothing removed for its age before then. It is part of a transaction.
func (c *Core) KeepAllUntil(tx *meta.Tx, until time.Time) error {
	text, err := until.MarshalText()
	if err != nil {
		return fmt.Errorf("record until when everything is kept: %w", err)
	}
	tx.OnCommit(func() { c.setKeepAll(until) })
	return tx.PutSetting(OlderSetting, text)
}

func (c *Core) setKeepAll(until time.Time) {
	c.Guard.Mu.Lock()
	defer c.Guard.Mu.Unlock()
	c.Guard.KeepAll = until
}

// boundKeepAll has everything kept for OlderGrace from now on at most. A time after that was set by a clock that was ahead. It is
// part of a transaction.
func (c *Core) boundKeepAll(tx *meta.Tx, now time.Time) error {
	if latest := now.Add(OlderGrace); keepAllSetting(tx).After(latest) {
		return c.KeepAllUntil(tx, latest)
	}
	return nil
}

// keepAllSetting returns the time before which nothing is removed for its age, zero
// if no older copy of the metadata was ever restored.
func keepAllSetting(tx *meta.Tx) (until time.Time) {
	_ = until.UnmarshalText(tx.Setting(OlderSetting)) // the setting may be absent
	return until
}
