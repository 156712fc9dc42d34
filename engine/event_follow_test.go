package engine

import (
	"context"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestFollowEvents begins streams at ids of which no event is known: only those from before the events that are kept
// may have a gap.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, t.TempDir()))
	at := func(ago time.Duration) string {
		var id ulid.ULID
		_ = id.SetTime(ulid.Timestamp(time.Now().Add(-ago)))
		return core.FormatID(model.ResourceEvent.Prefix(), id)
	}
	follow := func(organization, after string) (begins string, gap bool, events int) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		call := &model.Call{Organization: organization, Key: &model.Key{Scopes: model.Scopes()}}
		err := a.Engine.Core.FollowEvents(ctx, call, after, core.EventFilter{}, core.Follower{
			Valid: func() error { return nil },
			Event: func(model.Event) error { events++; cancel(); return nil },
			Gap:   func() error { gap = true; return nil },
			Beat: func(id string) error {
				begins = id
				a.Engine.Core.Emit(model.Event{Type: model.EventDatabaseFailed, Organization: organization})
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return begins, gap, events
	}
	begins, _, _ := follow("org_quiet", "")
	for name, c := range map[string]struct {
		organization, after string
		gap                 bool
	}{
		"where a quiet stream began":      {"org_quiet", begins, false},
		"before the first event":          {"org_new", at(24 * time.Hour), false},
		"longer ago than events are kept": {"org_newer", at(model.EventRetention + time.Hour), true},
	} {
		if _, gap, events := follow(c.organization, c.after); gap != c.gap || events == 0 {
			t.Errorf("%s: %d events, a gap: %t", name, events, gap)
		}
	}
}
