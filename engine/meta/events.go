package meta

import (
	"cmp"
	"math"
	"time"

	"holdfast/engine/model"
)

// EventSource is what transactions need to record events.
type EventSource struct {
	// Stamp returns the id and the time of an event. Ids increase.
	Stamp func() (id string, at time.Time)
	// DeliveryID returns the id of a delivery.
	DeliveryID func() string
	// Operator means that the operator has a webhook, which receives alarming events.
	Operator bool
	// Committed is called for each event once it is durable. It must not block.
	Committed func(model.Event)
}

// RecordEvents makes transactions record events from now on.
func (db *DB) RecordEvents(source EventSource) { db.events.Store(&source) }

// Happened returns a channel that is closed at the next commit of events.
func (db *DB) Happened() <-chan struct{} { return db.wakes.events.wait() }

// DeliveriesChanged returns a channel that is closed at the next commit of deliveries.
func (db *DB) DeliveriesChanged() <-chan struct{} { return db.wakes.deliveries.wait() }

const eventsTable, webhooksTable, deliveriesTable = "events", "webhooks", "deliveries"

// Events are indexed ByOrganization. Ids increase in the order of the commits.
func (tx *Tx) Events() Table[model.Event] {
	t := table(tx, eventsTable, func(e *model.Event) string { return e.ID },
		by(ByOrganization, func(e *model.Event) []byte { return Key(e.Organization) }))
	t.tally = func(e *model.Event) (string, model.Totals) { return e.Organization, model.Totals{Events: 1} }
	t.salvage = func(keys map[string][]byte) model.Event {
		return model.Event{Organization: keyPart(keys[ByOrganization], 0)}
	}
	return t
}

// LastEvent returns the id of the newest event, "" if there is none.
func (tx *Tx) LastEvent() string {
	id, _ := tx.Events().bucket().Cursor().Last()
	return string(id)
}

// Webhooks are indexed ByOrganization.
func (tx *Tx) Webhooks() Table[model.Webhook] {
	return table(tx, webhooksTable, func(w *model.Webhook) string { return w.ID },
		by(ByOrganization, func(w *model.Webhook) []byte { return Key(w.Organization) }))
}

// RecordEvent records an event, and the deliveries to the webhooks that select it, in the
// transaction of the change that it is about. It sets the event's id and time.
func (tx *Tx) RecordEvent(e model.Event) error {
	if tx.events == nil {
		return nil
	}
	e.ID, e.At = tx.events.Stamp()
	e.Message = model.CleanText(e.Message, model.MaxEventMessage)
	if err := tx.keepEvent(e); err != nil {
		return err
	}
	tx.OnCommit(func() {
		tx.events.Committed(e)
		tx.wakes.events.signal()
	})
	return tx.deliver(e)
}

// keepEvent stores an event of an organization in place of its oldest one, if it has the most that are kept.
func (tx *Tx) keepEvent(e model.Event) error {
	if e.Organization == "" {
		return nil
	}
	if err := tx.Events().Insert(e); err != nil {
		return err
	}
	totals, err := tx.Totals(e.Organization)
	if err != nil || totals.Events <= model.MaxEvents {
		return err
	}
	for _, id := range tx.Events().OldestIDs(ByOrganization, Key(e.Organization), 1) {
		err = tx.Events().Drop(id)
	}
	return err
}

// deliver records the deliveries of an event.
func (tx *Tx) deliver(e model.Event) error {
	webhooks := tx.Webhooks().Oldest(ByOrganization, Key(e.Organization), "", math.MaxInt)
	if tx.events.Operator && e.Type.Alarming() {
		webhooks = append(webhooks, model.Webhook{ID: model.OperatorWebhook, Enabled: true, Events: []string{"*"}, Scopes: model.EventScopes()})
	}
	for _, w := range webhooks {
		if !w.Wants(e) {
			continue
		}
		if err := tx.addDelivery(model.Delivery{
			ID: tx.events.DeliveryID(), Organization: w.Organization, Webhook: w.ID, Event: e,
			Status: model.DeliveryPending, NextAt: e.At, CreatedAt: e.At,
		}); err != nil {
			return err
		}
	}
	return nil
}

// addDelivery stores a delivery within the bounds of its organization: in place of the oldest one
// that is not pending, if it has the most that are kept.
func (tx *Tx) addDelivery(d model.Delivery) error {
	totals, err := tx.Totals(deliveryOwner(&d))
	if err != nil {
		return err
	}
	if totals.Pending >= model.MaxPendingDeliveries {
		d.Status, d.CompletedAt = model.DeliveryFailed, &d.CreatedAt
		d.LastError = "not sent: too many deliveries were pending"
	}
	if totals.Deliveries >= model.MaxDeliveries {
		for _, id := range tx.Deliveries().OldestIDs(ByOrganization, Key(d.Organization), 1) {
			if err := tx.Deliveries().Drop(id); err != nil {
				return err
			}
		}
	}
	tx.OnCommit(tx.wakes.deliveries.signal)
	return tx.Deliveries().Insert(d)
}

// deliveryOwner is the name under which a delivery counts in the totals.
func deliveryOwner(d *model.Delivery) string { return cmp.Or(d.Organization, model.OperatorWebhook) }
