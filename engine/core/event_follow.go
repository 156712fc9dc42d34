package core

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// followBatch is how many events are read at once.
const followBatch = 100

// Heartbeat is the longest time without a message in a stream.
const Heartbeat = 15 * time.Second

// Follower receives a stream. An error of its functions ends the stream.
type Follower struct {
	// Valid reports whether the caller may still receive it.
	Valid func() error
	Event func(model.Event) error
	// Gap is called first if the events after the caller's last one are not all kept any more.
	Gap func() error
	// Beat is called at the start, and when nothing else was for a Heartbeat, with the
	// id after which another stream goes on.
	Beat func(after string) error
}

// FollowEvents passes the events after the one with the id after, and those that
// follow, to f until ctx ends or the appliance stops. Without an id it begins now.
func (c *Core) FollowEvents(ctx context.Context, call *model.Call, after string, filter EventFilter, f Follower) error {
	after, err := c.startFollowing(call, after, f)
	if err == nil {
		err = f.Beat(after) // the client knows from when on it misses nothing
	}
	if err != nil {
		return err
	}
	beat := time.NewTicker(Heartbeat)
	defer beat.Stop()
	for {
		changed := c.Meta.Happened() // before the read
		events, last, err := c.Events(call, after, followBatch, filter)
		if err == nil {
			err = f.Valid()
		}
		for _, e := range events {
			if err == nil {
				err = f.Event(e)
			}
		}
		if err != nil {
			return err
		}
		if last != after { // there may be more
			after = last
			continue
		}
		select {
		case <-changed:
		case <-beat.C:
			after = c.eventsRead(after)
			if err := f.Beat(after); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		case <-c.Watchers.Ended():
			return nil
		case <-c.Lifetime.Done():
			return nil
		}
	}
}

// startFollowing returns the id after which a stream starts.
func (c *Core) startFollowing(call *model.Call, after string, f Follower) (string, error) {
	if after != "" && !model.ResourceEvent.HasPrefix(after) {
		return "", model.Invalid("Last-Event-ID", "must be the id of an event")
	}
	kept := true
	err := c.Meta.View(func(tx *meta.Tx) (err error) {
		if after != "" {
			kept, err = c.keepsEventsAfter(tx, call.Organization, after)
			return err
		}
		after = c.eventsRead(tx.Events().NewestID(meta.ByOrganization, meta.Key(call.Organization)))
		return nil
	})
	if err == nil && !kept {
		err = f.Gap()
	}
	return after, err
}

// eventMargin is longer than an event's transaction takes.
const eventMargin = time.Hour

// eventsRead returns an id after which all events follow that are not committed yet, if
// those of an organization up to newest are read. It is no older than eventMargin, so a
// client of a quiet stream can go on from there however long it was quiet. The newest
// event's id is often another organization's, which would tell of it.
func (c *Core) eventsRead(newest string) string { return max(newest, c.eventIDAt(eventMargin)) }

// eventIDAt returns the smallest id of events that are younger than age.
func (c *Core) eventIDAt(age time.Duration) string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(c.Clock().Add(-age))) // cannot fail for some thousand years
	return FormatID(model.ResourceEvent.Prefix(), id)
}

// keepsEventsAfter reports whether no event of an organization after the id was removed.
// The oldest are removed first: for their number, or for their age.
func (c *Core) keepsEventsAfter(tx *meta.Tx, organization, after string) (bool, error) {
	if oldest := tx.Events().OldestIDs(meta.ByOrganization, meta.Key(organization), 1); len(oldest) > 0 && oldest[0] <= after {
		return true, nil
	}
	totals, err := tx.Totals(organization)
	return totals.Events < model.MaxEvents && after > c.eventIDAt(model.EventRetention), err
}
