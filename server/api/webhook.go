package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/webhooks"
	"holdfast/server/api/wire"
)

// NewEvent returns the wire form of an event.
func NewEvent(e model.Event) wire.Event {
	view := wire.Event{ID: e.ID, Type: string(e.Type), Timestamp: e.At.UTC(), Data: wire.EventData{
		Organization: orAbsent(e.Organization), DatabaseID: orAbsent(e.Database), OperationID: orAbsent(e.Operation), Message: e.Message,
	}}
	if e.Resource.Type != model.ResourceNone {
		view.Data.Resource = &wire.EventResource{Type: string(e.Resource.Type), ID: e.Resource.ID, Name: e.Resource.Name}
	}
	return view
}

// NewWebhook returns the wire form of a webhook.
func NewWebhook(w model.Webhook) wire.Webhook {
	return wire.Webhook{
		ID: w.ID, Name: w.Name, URL: w.URL, Events: convert(w.Events, func(s string) wire.EventSelector { return wire.EventSelector(s) }), Scopes: newScopes(w.Scopes),
		Enabled: w.Enabled, DisabledReason: orAbsent(w.DisabledReason),
		PreviousUntil: utcOrAbsent(&w.PreviousUntil), CreatedAt: utc(w.CreatedAt), UpdatedAt: utc(w.UpdatedAt),
	}
}

// selected returns the engine's form of selectors, nil for nil.
func selected(selectors []wire.EventSelector) (events []string) {
	for _, s := range selectors {
		events = append(events, string(s))
	}
	return events
}

// NewDelivery returns the wire form of a delivery.
func NewDelivery(d model.Delivery) wire.Delivery {
	view := wire.Delivery{
		ID: d.ID, WebhookID: d.Webhook, Event: NewEvent(d.Event), Status: wire.DeliveryStatus(d.Status), Attempts: d.Attempts,
		LastAttemptAt: utcOrAbsent(d.LastAttemptAt), LastStatus: orAbsent(d.LastStatus), LastError: orAbsent(d.LastError),
		CreatedAt: utc(d.CreatedAt), CompletedAt: utcOrAbsent(d.CompletedAt),
	}
	if d.Status == model.DeliveryPending {
		view.NextAttemptAt = utcOrAbsent(&d.NextAt)
	}
	return view
}

// WebhookInput names a webhook.
type WebhookInput struct {
	WebhookID string `path:"webhookId" doc:"Id of the webhook."`
}

// webhookActInput is an operation on a webhook without fields.
type webhookActInput struct {
	WebhookInput
	Body *NoFields
}

type webhookListInput struct {
	PageInput
	NameInput
}

func (h *handlers) webhookList(_ context.Context, call *model.Call, in *webhookListInput) (core.List[wire.Webhook], error) {
	page, err := h.engine.Webhooks.List(call, in.filter(), in.page())
	return convertList(page, NewWebhook), err
}

type createWebhookInput struct {
	Body wire.CreateWebhook
}

func (h *handlers) webhookCreate(_ context.Context, call *model.Call, in *createWebhookInput) (wire.WebhookSecret, error) {
	w, secret, err := h.engine.Webhooks.Create(call, webhooks.NewWebhook{Name: in.Body.Name, URL: in.Body.URL, Events: selected(in.Body.Events)})
	call.ETag = webhooks.Tag(w)
	return wire.WebhookSecret{Webhook: NewWebhook(w), Secret: secret.Reveal()}, err
}

func (h *handlers) webhookGet(_ context.Context, call *model.Call, in *WebhookInput) (wire.Webhook, error) {
	w, err := h.engine.Webhooks.Get(call, in.WebhookID)
	call.ETag = webhooks.Tag(w)
	return NewWebhook(w), err
}

type updateWebhookInput struct {
	WebhookInput
	Body wire.UpdateWebhook
}

func (h *handlers) webhookUpdate(_ context.Context, call *model.Call, in *updateWebhookInput) (wire.Webhook, error) {
	w, err := h.engine.Webhooks.Update(call, in.WebhookID, webhooks.Change{
		Name: in.Body.Name, URL: in.Body.URL, Events: selected(in.Body.Events), Enabled: in.Body.Enabled,
	})
	call.ETag = webhooks.Tag(w)
	return NewWebhook(w), err
}

func (h *handlers) webhookDelete(_ context.Context, call *model.Call, in *WebhookInput) (wire.DeletedWebhook, error) {
	return wire.DeletedWebhook{ID: in.WebhookID, Deleted: true}, h.engine.Webhooks.Delete(call, in.WebhookID)
}

func (h *handlers) webhookRotate(_ context.Context, call *model.Call, in *webhookActInput) (wire.WebhookSecret, error) {
	w, secret, err := h.engine.Webhooks.RotateSecret(call, in.WebhookID)
	call.ETag = webhooks.Tag(w)
	return wire.WebhookSecret{Webhook: NewWebhook(w), Secret: secret.Reveal()}, err
}

func (h *handlers) webhookPing(_ context.Context, call *model.Call, in *webhookActInput) (wire.Delivery, error) {
	d, err := h.engine.Webhooks.Ping(call, in.WebhookID)
	return NewDelivery(d), err
}

type deliveryListInput struct {
	WebhookInput
	PageInput
	CreatedInput
	Status wire.DeliveryStatus `query:"status" doc:"Only those with this status."`
	Type   wire.EventSelector  `query:"type" doc:"Only those of events that this selects."`
}

func (h *handlers) webhookDeliveries(_ context.Context, call *model.Call, in *deliveryListInput) (core.List[wire.Delivery], error) {
	page, err := h.engine.Webhooks.Deliveries(call, in.WebhookID, webhooks.DeliveryFilter{
		Filter: in.created(), Status: model.DeliveryStatus(in.Status), Events: eventFilter(in.Type),
	}, in.page())
	return convertList(page, NewDelivery), err
}

type resendInput struct {
	WebhookInput
	DeliveryID string `path:"deliveryId" doc:"Id of the delivery."`
	Body       *NoFields
}

func (h *handlers) webhookResend(_ context.Context, call *model.Call, in *resendInput) (wire.Delivery, error) {
	d, err := h.engine.Webhooks.Resend(call, in.WebhookID, in.DeliveryID)
	return NewDelivery(d), err
}
