package core

import (
	"testing"
	"time"
)

// A shorter retention rules a day after the first start with it, whatever starts there are in between.
func TestRetention(t *testing.T) {
	t.Parallel()
	const month, week = 720 * time.Hour, 168 * time.Hour
	begin := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	r := retention{Last: month}
	for _, step := range []struct {
		after       time.Duration
		value, want time.Duration
		removal     time.Duration // after begin; 0 for no grace
	}{
		{0, month, month, 0},
		{0, 0, month, 24 * time.Hour},
		{time.Hour, 0, month, 24 * time.Hour},
		{2 * time.Hour, week, month, 26 * time.Hour},
		{3 * time.Hour, month, month, 0},
		{4 * time.Hour, week, month, 28 * time.Hour},
		{-48 * time.Hour, week, month, -24 * time.Hour}, // the clock was set back
		{-23 * time.Hour, week, week, 0},
		{0, forEver, forEver, 0},
		{0, week, forEver, 24 * time.Hour},
		{24 * time.Hour, 0, week, 48 * time.Hour},
		{49 * time.Hour, 0, 0, 0},
	} {
		now := begin.Add(step.after)
		r = r.next(step.value, now, now)
		if got := r.at(step.value, now); got != step.want || !r.Until.IsZero() != (step.removal != 0) || step.removal != 0 && !r.Until.Equal(begin.Add(step.removal)) {
			t.Fatalf("%v after begin, with %v: %v in force, %+v", step.after, step.value, got, r)
		}
	}
}
