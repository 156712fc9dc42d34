package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// WebhookOptions select webhooks; an empty field selects all. Webhooks have no project.
type WebhookOptions struct {
	ListOptions
	Filter
}

// ListWebhooks returns a page of the webhooks.
func (c *Client) ListWebhooks(ctx context.Context, o WebhookOptions) (Page[wire.Webhook], error) {
	return list[wire.Webhook](ctx, c, "/webhooks", o.add(o.query()))
}

// Webhooks iterates over the webhooks that o selects.
func (c *Client) Webhooks(ctx context.Context, o WebhookOptions) iter.Seq2[wire.Webhook, error] {
	return all(ctx, o, func(o *WebhookOptions) *ListOptions { return &o.ListOptions }, c.ListWebhooks)
}

// CreateWebhook creates a webhook. The result has its secret, for [VerifyWebhook]; it
// is the only copy.
func (c *Client) CreateWebhook(ctx context.Context, in wire.CreateWebhook) (wire.WebhookSecret, error) {
	return one[wire.WebhookSecret](ctx, c, "POST", "/webhooks", in)
}

// GetWebhook returns a webhook's record.
func (c *Client) GetWebhook(ctx context.Context, id string) (wire.Webhook, error) {
	return one[wire.Webhook](ctx, c, "GET", path("webhooks", id), nil)
}

// UpdateWebhook changes a webhook.
func (c *Client) UpdateWebhook(ctx context.Context, id string, in wire.UpdateWebhook) (wire.Webhook, error) {
	return one[wire.Webhook](ctx, c, "PATCH", path("webhooks", id), in)
}

// DeleteWebhook deletes a webhook with its deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id string) (wire.DeletedWebhook, error) {
	return one[wire.DeletedWebhook](ctx, c, "DELETE", path("webhooks", id), nil)
}

// RotateWebhookSecret gives a webhook a new secret. For a day, requests are signed with
// the previous one too.
func (c *Client) RotateWebhookSecret(ctx context.Context, id string) (wire.WebhookSecret, error) {
	return one[wire.WebhookSecret](ctx, c, "POST", path("webhooks", id, "rotate-secret"), nil)
}

// PingWebhook sends a webhook an event of type webhook.ping and returns its delivery.
func (c *Client) PingWebhook(ctx context.Context, id string) (wire.Delivery, error) {
	return one[wire.Delivery](ctx, c, "POST", path("webhooks", id, "ping"), nil)
}

// DeliveryOptions select deliveries; an empty field selects all. Deliveries have no
// project and no name.
type DeliveryOptions struct {
	ListOptions
	Filter
	Status wire.DeliveryStatus
	Type   wire.EventSelector // of the events
}

// ListWebhookDeliveries returns a page of the deliveries of a webhook.
func (c *Client) ListWebhookDeliveries(ctx context.Context, id string, o DeliveryOptions) (Page[wire.Delivery], error) {
	return list[wire.Delivery](ctx, c, path("webhooks", id, "deliveries"), setTexts(o.add(o.query()), map[string]string{"status": string(o.Status), "type": string(o.Type)}))
}

// WebhookDeliveries iterates over the deliveries of a webhook that o selects.
func (c *Client) WebhookDeliveries(ctx context.Context, id string, o DeliveryOptions) iter.Seq2[wire.Delivery, error] {
	return all(ctx, o, func(o *DeliveryOptions) *ListOptions { return &o.ListOptions },
		func(ctx context.Context, o DeliveryOptions) (Page[wire.Delivery], error) {
			return c.ListWebhookDeliveries(ctx, id, o)
		})
}

// ResendWebhookDelivery sends a delivery again, with the id of the same event.
func (c *Client) ResendWebhookDelivery(ctx context.Context, id, delivery string) (wire.Delivery, error) {
	return one[wire.Delivery](ctx, c, "POST", path("webhooks", id, "deliveries", delivery, "resend"), nil)
}
