package core

import (
	"context"
	"errors"
	"time"

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
	// Beat is called at the start, and when nothing else was for a Heartbeat.
	Beat func() error
}

// FollowEvents passes the events after the one with the id after, and those that
// follow, to f until ctx ends or the appliance stops. Without an id it begins now.
func (c *Core) FollowEvents(ctx context.Context, call *model.Call, after string, filter EventFilter, f Follower) error {
	after, err := c.startFollowing(call, after, f)
	if err == nil {
		err = f.Beat() // the client knows from when on it misses nothing
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
			if err := f.Beat(); err != nil {
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
	if after == "" {
		return c.LastEvent()
	}
	if !model.ResourceEvent.HasPrefix(after) {
		return "", model.Invalid("Last-Event-ID", "must be the id of an event")
	}
	known, err := meta.Value(c.Meta.View, func(tx *meta.Tx) (bool, error) {
		e, err := tx.Events().Get(after)
		if errors.Is(err, meta.ErrNotFound) {
			return false, nil
		}
		return e.Organization == call.Organization, err
	})
	if err == nil && !known {
		err = f.Gap()
	}
	return after, err
}
