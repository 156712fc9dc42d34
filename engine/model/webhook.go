package model

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// The bounds of webhooks. Those of deliveries are for each organization.
const (
	MaxWebhooks          = 20
	MaxPendingDeliveries = 1000
	MaxDeliveries        = 5000
	DeliveryRetention    = 7 * 24 * time.Hour
	// MaxEvents and EventRetention bound the events that an organization can still read.
	MaxEvents      = 10_000
	EventRetention = 7 * 24 * time.Hour
)

// OperatorWebhook is the id of the operator's own webhook, which has no record.
const OperatorWebhook = "operator"

// Webhook is a URL that receives events of its organization as signed requests.
type Webhook struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Name         string `json:"name"`
	URL          string `json:"url"` // may contain a secret of the receiver
	// Events selects events: types, areas with a star such as "backup.*", or "*".
	Events []string `json:"events"`
	// Scopes are those of EventScopes that its maker held. It receives no event that needs another one, whoever changes
	// it later, and outlives a key that made it.
	Scopes []Scope `json:"scopes"`
	// Enabled means that events are sent. DisabledReason says why the appliance disabled it.
	Enabled        bool      `json:"enabled"`
	DisabledReason string    `json:"disabled_reason"`
	Secret         []byte    `json:"secret"` // sealed
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
	// Previous is the sealed secret before the last rotation. Until PreviousUntil,
	// requests are signed with both.
	Previous      []byte    `json:"previous,omitempty"`
	PreviousUntil time.Time `json:"previous_until,omitzero"`
}

// Wants reports whether the webhook is to receive an event.
func (w Webhook) Wants(e Event) bool {
	if e.Webhook != "" {
		return e.Webhook == w.ID
	}
	return w.Enabled && slices.Contains(w.Scopes, e.Type.Scope()) && e.Type.SelectedBy(w.Events)
}

// ValidateEventFilter checks the events that a webhook selects, and drops duplicates.
func ValidateEventFilter(field string, patterns []string) ([]string, error) {
	var kept []string
	for _, p := range patterns {
		area, all := strings.CutSuffix(p, ".*")
		known := p == "*" || all && slices.Contains(EventAreas(), area) ||
			slices.Contains(EventTypes(), EventType(p)) && slices.Contains(EventAreas(), EventType(p).Area())
		if !known {
			return nil, Invalid(field, "%q selects no event; give * for all, an area such as backup.* (%s), or a type such as backup.failed",
				CleanText(p, 64), strings.Join(EventAreas(), ", "))
		}
		if !slices.Contains(kept, p) {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return nil, Invalid(field, "must select at least one event, such as backup.*")
	}
	return kept, nil
}

// MaxWebhookURL is the maximum length of a webhook's URL, in bytes.
const MaxWebhookURL = 2000

// ValidateWebhookURL checks a webhook's URL. plain allows http as well as https. The
// message does not contain the URL, which may hold a secret.
func ValidateWebhookURL(field, text string, plain bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "" || len(text) > MaxWebhookURL:
		return Invalid(field, "must be a URL such as https://example.com/hook, of at most %d bytes", MaxWebhookURL)
	case u.Scheme != "https" && (u.Scheme != "http" || !plain):
		return Invalid(field, "must begin with https://")
	case u.User != nil:
		return Invalid(field, "must not contain a user name or a password: requests are signed")
	case u.Fragment != "":
		return Invalid(field, "must not contain a fragment (#…), which is not sent")
	}
	return nil
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// The states of a delivery; the last two are final.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Delivery is an event on its way to one webhook, or that arrived there or was given up.
type Delivery struct {
	ID string `json:"id"`
	// Organization owns the webhook, "" for the operator's.
	Organization string         `json:"organization"`
	Webhook      string         `json:"webhook"`
	Event        Event          `json:"event"`
	Status       DeliveryStatus `json:"status"`
	Attempts     int            `json:"attempts"`
	// Tries counts the attempts since it was last requested: a resend begins anew.
	Tries int `json:"tries"`
	// NextAt is the time of the next attempt of a pending delivery.
	NextAt time.Time `json:"next_at"`
	// LastStatus is the HTTP status of the last response, 0 for none, and LastError why
	// the last attempt failed.
	LastStatus    int        `json:"last_status"`
	LastError     string     `json:"last_error"`
	LastAttemptAt *time.Time `json:"last_attempt_at"`
	CreatedAt     time.Time  `json:"created_at"`
	CompletedAt   *time.Time `json:"completed_at"`
}
