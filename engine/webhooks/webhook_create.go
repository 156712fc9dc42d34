package webhooks

import (
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewWebhook describes a webhook to create.
type NewWebhook struct {
	Name   string
	URL    string
	Events []string
}

// Create creates a webhook. The returned secret is the only copy.
func (s *Service) Create(call *model.Call, in NewWebhook) (model.Webhook, model.Secret, error) {
	events, err := s.validate(in)
	if err == nil {
		err = permitSelectors(call, events)
	}
	if err == nil {
		err = s.core.ClaimIdempotencyKey(call)
	}
	if err != nil {
		return model.Webhook{}, model.Secret{}, err
	}
	now, secret := s.core.Clock(), newSecret()
	w := model.Webhook{
		ID: s.core.NewID(model.ResourceWebhook), Organization: call.Organization, Name: in.Name, URL: in.URL, Events: events, Scopes: heldScopes(call),
		Enabled: true, CreatedAt: now, UpdatedAt: now,
	}
	w.Secret = s.core.Sealer.Seal(secretPurpose(w.ID), secret)
	call.Resource = resource(w)
	err = s.core.Change(call, func(tx *meta.Tx) error {
		if tx.Webhooks().HasAtLeast(meta.ByOrganization, meta.Key(call.Organization), model.MaxWebhooks) {
			return model.Errorf(model.CodeForbidden, "an organization can have %d webhooks; delete one first", model.MaxWebhooks)
		}
		return tx.Webhooks().Insert(w)
	})
	return w, secret, err
}

func (s *Service) validate(in NewWebhook) (events []string, err error) {
	if err := model.ValidateLabel("name", in.Name); err != nil {
		return nil, err
	}
	if err := s.destinations.validate("url", in.URL); err != nil {
		return nil, err
	}
	return model.ValidateEventFilter("events", in.Events)
}

// heldScopes returns the scopes of events that the caller holds.
func heldScopes(call *model.Call) []model.Scope {
	return slices.DeleteFunc(model.EventScopes(), func(scope model.Scope) bool { return !call.Holds(scope) })
}

// permitSelectors refuses selectors of events that the caller may not see.
func permitSelectors(call *model.Call, selectors []string) error {
	for _, selector := range selectors {
		if scope := model.ScopeSelected(selector); scope != "" && !call.Holds(scope) {
			return model.Errorf(model.CodeInsufficientScope, "%s needs the scope %s, which the caller lacks", selector, scope)
		}
	}
	return nil
}

func resource(w model.Webhook) model.Resource {
	return model.Resource{Type: model.ResourceWebhook, ID: w.ID, Name: w.Name}
}

// secretOverlap is how long requests are signed with the previous secret too after a rotation.
const secretOverlap = 24 * time.Hour

// RotateSecret gives a webhook a new secret. The returned secret is the only copy.
func (s *Service) RotateSecret(call *model.Call, id string) (model.Webhook, model.Secret, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Webhook{}, model.Secret{}, err
	}
	secret := newSecret()
	w, err := s.change(call, id, func(w *model.Webhook) error {
		w.Previous, w.PreviousUntil = w.Secret, s.core.Clock().Add(secretOverlap)
		w.Secret = s.core.Sealer.Seal(secretPurpose(w.ID), secret)
		return nil
	})
	return w, secret, err
}
