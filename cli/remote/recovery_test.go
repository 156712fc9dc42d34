package remote

import (
	"testing"
	"time"
)

// TestTimeOrAgo: relative times may be in days.
func TestTimeOrAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"2h": 2 * time.Hour, "2d": 48 * time.Hour} {
		if got, err := timeOrAgo("to", text, now); err != nil || !got.Equal(now.Add(-want)) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"d", "-2d", "2w"} {
		if got, err := timeOrAgo("to", text, now); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}
