package core

import (
	"testing"
	"time"
)

// TestIsPast: what a clock that was ahead noted is due, not in years.
func TestIsPast(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for since, want := range map[time.Duration]bool{-time.Minute: false, -time.Hour: true, 0: false, 73 * 365 * 24 * time.Hour: true} {
		if got := IsPast(now, now.Add(since), time.Hour); got != want {
			t.Errorf("with a last one %s ahead: %v", since, got)
		}
	}
}
