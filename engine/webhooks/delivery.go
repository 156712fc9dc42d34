package webhooks

import (
	"errors"
	"fmt"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DeliveryFilter selects deliveries. An empty field selects all.
type DeliveryFilter struct {
	core.Filter
	Status model.DeliveryStatus
	Events core.EventFilter
}

func (f DeliveryFilter) admits(d model.Delivery) bool {
	return f.Admits("", "", d.CreatedAt) && core.Equals(f.Status, d.Status) && f.Events.Admits(d.Event)
}

// Deliveries returns the deliveries of a webhook that match the filter, and whose events the call may see.
func (s *Service) Deliveries(call *model.Call, id string, filter DeliveryFilter, page core.Page) (core.List[model.Delivery], error) {
	selection := core.Select(filter, func(d model.Delivery) bool { return filter.admits(d) && call.Holds(d.Event.Type.Scope()) })
	w, err := selection.Walk(s.core, call, model.ActionWebhookDeliveries, page, id)
	if err == nil {
		_, err = s.Get(call, id)
	}
	if err != nil {
		return core.List[model.Delivery]{}, err
	}
	return core.WalkRecords(s.core.Meta.View, w, (*meta.Tx).Deliveries, meta.ByWebhook, id, selection)
}

// Resend sends a delivery again, with the id of the same event.
func (s *Service) Resend(call *model.Call, id, delivery string) (d model.Delivery, err error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return d, err
	}
	call.Resource = model.Resource{Type: model.ResourceDelivery, ID: delivery}
	err = s.core.Change(call, func(tx *meta.Tx) error {
		w, err := webhookOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := refuseDisabled(w); err != nil {
			return err
		}
		old, err := tx.Deliveries().Get(delivery)
		if errors.Is(err, meta.ErrNotFound) || err == nil && (old.Webhook != id || !call.Holds(old.Event.Type.Scope())) {
			return model.NotFound(model.ResourceDelivery, delivery)
		}
		if err != nil {
			return err
		}
		call.Resource.Name = string(old.Event.Type)
		if err := refuseFull(tx, call.Organization, old); err != nil {
			return err
		}
		d, err = tx.UpdateDelivery(delivery, func(d *model.Delivery) error {
			d.Status, d.Tries, d.NextAt, d.CompletedAt = model.DeliveryPending, 0, s.core.Clock(), nil
			return nil
		})
		return err
	})
	return d, err
}

func refuseDisabled(w model.Webhook) error {
	if !w.Enabled {
		return model.Errorf(model.CodeConflict, "the webhook %s is disabled: enable it first", w.Name)
	}
	return nil
}

// refuseFull refuses another pending delivery beyond the bound.
func refuseFull(tx *meta.Tx, organization string, d model.Delivery) error {
	totals, err := tx.Totals(organization)
	if err == nil && d.Status != model.DeliveryPending && totals.Pending >= model.MaxPendingDeliveries {
		return model.Errorf(model.CodeConflict, "%d deliveries are pending already: wait until some have ended", totals.Pending)
	}
	return err
}

// Ping sends a webhook an event of type webhook.ping, whatever events it selects, and returns its delivery.
func (s *Service) Ping(call *model.Call, id string) (d model.Delivery, err error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return d, err
	}
	call.Resource = model.Resource{Type: model.ResourceWebhook, ID: id}
	err = s.core.Change(call, func(tx *meta.Tx) error {
		w, err := webhookOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := errors.Join(refuseDisabled(w), refuseFull(tx, call.Organization, d)); err != nil {
			return err
		}
		call.Resource = resource(w)
		if err := tx.RecordEvent(model.Event{
			Type: model.EventWebhookPing, Organization: w.Organization, Resource: resource(w), Webhook: w.ID,
			Message: fmt.Sprintf("This is a test of the webhook %s.", w.Name),
		}); err != nil {
			return err
		}
		newest, _, err := tx.Deliveries().Newest(meta.ByWebhook, meta.Key(id), "", 1)
		if err == nil && len(newest) == 0 {
			err = fmt.Errorf("find the delivery of a ping: %w", meta.ErrNotFound)
		}
		if err == nil {
			d = newest[0]
		}
		return err
	})
	return d, err
}
