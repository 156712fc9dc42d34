package core

import (
	"errors"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// recordEvents has transactions record the events of what they change.
func (c *Core) recordEvents() error {
	last, err := meta.Value(c.Meta.View, func(tx *meta.Tx) (string, error) { return tx.LastEvent(), nil })
	if err != nil {
		return err
	}
	c.IDs.Follow(last)
	c.Meta.RecordEvents(meta.EventSource{
		Stamp:      func() (string, time.Time) { return c.NewID(model.ResourceEvent), c.RetentionClock() },
		DeliveryID: func() string { return c.NewID(model.ResourceDelivery) },
		Operator:   c.Config.Webhooks.OperatorURL != "",
		Committed:  c.observe,
	})
	return nil
}

func (c *Core) observe(event model.Event) {
	if c.Config.Observe != nil {
		c.Config.Observe(event)
	}
}

// Emit records an event that no change of a record means.
func (c *Core) Emit(event model.Event) {
	record := func(tx *meta.Tx) error { return tx.RecordEvent(event) }
	if err := c.RecordLater(c.Meta.Update(record), "an event", record); err != nil {
		c.Log.Error("record an event", "type", event.Type, "error", err)
	}
}

// EventFilter selects events. An empty field selects all.
type EventFilter struct {
	Types     []string // patterns, see model.ValidateEventFilter
	Operation string
}

// Admits reports whether the filter selects an event.
func (f EventFilter) Admits(e model.Event) bool {
	return (len(f.Types) == 0 || e.Type.SelectedBy(f.Types)) && Equals(f.Operation, e.Operation)
}

// Events returns up to limit events that the call may see, after the event with the id
// after, oldest first, and the id of the last one that was examined. It starts with the
// oldest one that is kept.
func (c *Core) Events(call *model.Call, after string, limit int, filter EventFilter) (events []model.Event, last string, err error) {
	err = c.Meta.View(func(tx *meta.Tx) error {
		events = tx.Events().Oldest(meta.ByOrganization, meta.Key(call.Organization), after, limit)
		return nil
	})
	last = after
	if len(events) > 0 {
		last = events[len(events)-1].ID
	}
	events = slices.DeleteFunc(events, func(e model.Event) bool { return !call.Holds(e.Type.Scope()) || !filter.Admits(e) })
	return events, last, err
}

// eventBatch is how many expired events or deliveries of an organization one transaction removes.
const eventBatch = 500

// PruneEvents removes the events and the deliveries that are older than their retention.
func (c *Core) PruneEvents() error {
	now, ok := c.RemovableBefore(0)
	if !ok {
		return nil
	}
	var errs []error
	owners := []string{""}
	errs = append(errs, c.Meta.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(o model.Organization) error {
			owners = append(owners, o.ID)
			return nil
		})
	}))
	for _, owner := range owners {
		errs = append(errs,
			prune(c, (*meta.Tx).Events, owner, func(e model.Event) (string, bool) {
				return e.ID, now.Sub(e.At) > model.EventRetention
			}),
			prune(c, (*meta.Tx).Deliveries, owner, func(d model.Delivery) (string, bool) {
				return d.ID, now.Sub(d.CreatedAt) > model.DeliveryRetention
			}))
	}
	return errors.Join(errs...)
}

// prune removes the oldest records of an organization that have expired.
func prune[T any](c *Core, table func(*meta.Tx) meta.Table[T], owner string, expired func(T) (id string, is bool)) error {
	oldest := func(tx *meta.Tx) (ids []string, err error) {
		for _, record := range table(tx).Oldest(meta.ByOrganization, meta.Key(owner), "", eventBatch) {
			if id, is := expired(record); is {
				ids = append(ids, id)
			}
		}
		return ids, nil
	}
	for c.Lifetime.Err() == nil {
		ids, err := meta.Value(c.Meta.View, oldest)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := c.Meta.Update(func(tx *meta.Tx) error {
			for _, id := range ids {
				if err := table(tx).Drop(id); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
