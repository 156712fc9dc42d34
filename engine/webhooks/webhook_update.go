package webhooks

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Change holds the properties of a webhook to change; nil leaves one unchanged.
type Change struct {
	Name    *string
	URL     *string
	Events  []string
	Enabled *bool
}

// List returns the webhooks of the call's organization that match the filter.
func (s *Service) List(call *model.Call, filter core.Filter, page core.Page) (core.List[model.Webhook], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionWebhookList, (*meta.Tx).Webhooks, page,
		core.Select(filter, func(w model.Webhook) bool { return filter.Admits("", w.Name, w.CreatedAt) }))
}

// Get returns a webhook.
func (s *Service) Get(call *model.Call, id string) (model.Webhook, error) {
	call.Resource = model.Resource{Type: model.ResourceWebhook, ID: id}
	w, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Webhook, error) { return webhookOf(tx, call.Organization, id) })
	if err == nil {
		call.Resource = resource(w)
	}
	return w, err
}

// webhookOf returns a webhook of an organization.
func webhookOf(tx *meta.Tx, organization, id string) (model.Webhook, error) {
	w, err := tx.Webhooks().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && w.Organization != organization {
		return model.Webhook{}, model.NotFound(model.ResourceWebhook, id)
	}
	return w, err
}

// Update changes a webhook. Deliveries that are pending go to its new URL. The scopes that its maker held stay, and who
// changes what it receives or where must hold them too.
func (s *Service) Update(call *model.Call, id string, change Change) (model.Webhook, error) {
	if err := s.validateChange(&change); err != nil {
		return model.Webhook{}, err
	}
	return s.change(call, id, func(w *model.Webhook) error {
		next := change.apply(*w)
		if err := permitChange(call, *w, next); err != nil {
			return err
		}
		*w = next
		return nil
	})
}

// permitChange refuses to send elsewhere, or to select anew, what the caller may not see, and to select what the
// webhook may not receive.
func permitChange(call *model.Call, old, next model.Webhook) error {
	if old.URL == next.URL && slices.Equal(old.Events, next.Events) {
		return nil
	}
	for _, scope := range old.Scopes {
		if !call.Holds(scope) {
			return model.Errorf(model.CodeInsufficientScope, "the webhook %s receives events that need the scope %s, which the caller lacks", old.Name, scope)
		}
	}
	for _, selector := range next.Events {
		if scope := model.ScopeSelected(selector); scope != "" && !slices.Contains(old.Scopes, scope) {
			return model.Invalid("events", "%s needs the scope %s, which the maker of this webhook did not have: make another webhook", selector, scope)
		}
	}
	return nil
}

// validateChange checks what a change sets, and drops duplicate events.
func (s *Service) validateChange(c *Change) (err error) {
	if c.Name != nil {
		err = model.ValidateLabel("name", *c.Name)
	}
	if err == nil && c.URL != nil {
		err = s.destinations.validate("url", *c.URL)
	}
	if err == nil && c.Events != nil {
		c.Events, err = model.ValidateEventFilter("events", c.Events)
	}
	return err
}

func (c Change) apply(w model.Webhook) model.Webhook {
	w.Name, w.URL = *cmp.Or(c.Name, &w.Name), *cmp.Or(c.URL, &w.URL)
	if c.Events != nil {
		w.Events = c.Events
	}
	if c.Enabled != nil {
		w.Enabled, w.DisabledReason = *c.Enabled, ""
	}
	return w
}

// change commits a change of a webhook.
func (s *Service) change(call *model.Call, id string, change func(*model.Webhook) error) (w model.Webhook, err error) {
	call.Resource = model.Resource{Type: model.ResourceWebhook, ID: id}
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if w, err = webhookOf(tx, call.Organization, id); err != nil {
			return err
		}
		if err := call.Match(Tag(w)); err != nil {
			return err
		}
		w, err = tx.Webhooks().Update(id, func(w *model.Webhook) error {
			before := Tag(*w)
			err := change(w)
			if Tag(*w) != before {
				w.UpdatedAt = s.core.Clock()
			}
			return err
		})
		call.Resource = resource(w)
		return err
	})
	return w, err
}

// Tag identifies the state of a webhook.
func Tag(w model.Webhook) string { return model.Tag(w) }

// Delete deletes a webhook with its deliveries.
func (s *Service) Delete(call *model.Call, id string) error {
	call.Resource = model.Resource{Type: model.ResourceWebhook, ID: id}
	return s.core.Change(call, func(tx *meta.Tx) error {
		w, err := webhookOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := call.Match(Tag(w)); err != nil {
			return err
		}
		call.Resource = resource(w)
		for _, delivery := range tx.Deliveries().OldestIDs(meta.ByWebhook, meta.Key(id), math.MaxInt) {
			if err := tx.Deliveries().Drop(delivery); err != nil {
				return err
			}
		}
		return tx.Webhooks().Delete(id)
	})
}
