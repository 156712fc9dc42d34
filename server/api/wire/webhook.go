package wire

import "time"

// Event is something that happened. Webhooks receive it as the body of a request.
type Event struct {
	ID        string    `json:"id" doc:"The same in every delivery and stream."`
	Type      string    `json:"type" doc:"What happened, area and act. Later versions may have more types." example:"backup.completed"`
	Timestamp time.Time `json:"timestamp"`
	Data      EventData `json:"data"`
}

// EventData says what an event is about.
type EventData struct {
	Organization *string        `json:"organization" doc:"Id; null for an event of the machine, which only the operator receives."`
	Resource     *EventResource `json:"resource"`
	DatabaseID   *string        `json:"database_id"`
	OperationID  *string        `json:"operation_id"`
	Message      string         `json:"message" doc:"For a person."`
}

// EventResource identifies the resource of an event.
type EventResource struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// EventSelector selects events: a type such as "backup.failed", an area such as "backup.*", or "*" for all.
type EventSelector string

// Webhook is a webhook's record.
type Webhook struct {
	ID             string          `json:"id"`
	Name           string          `json:"name"`
	URL            string          `json:"url"`
	Events         []EventSelector `json:"events" doc:"What it receives."`
	Scopes         []string        `json:"scopes" doc:"The scopes of events that its maker held. It receives only events that these allow, also after the maker's key was revoked or expired."`
	Enabled        bool            `json:"enabled"`
	DisabledReason *string         `json:"disabled_reason" doc:"Why the appliance disabled it."`
	PreviousUntil  *time.Time      `json:"previous_secret_until" doc:"Until when requests are signed with the previous secret too."`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
}

// WebhookSecret is a webhook's record with its new secret.
type WebhookSecret struct {
	Webhook
	Secret string `json:"secret" doc:"Signs its requests, as Standard Webhooks specifies. It is shown only in this response." example:"whsec_…"`
}

// CreateWebhook is a request to create a webhook.
type CreateWebhook struct {
	Name   string          `json:"name" doc:"1 to 63 letters, digits, spaces, dots, underscores and hyphens."`
	URL    string          `json:"url" maxLength:"2000" doc:"Of a public host, with https. The operator can allow private hosts."`
	Events []EventSelector `json:"events" minItems:"1" maxItems:"50" doc:"What it is to receive."`
}

// UpdateWebhook is a request to change a webhook.
type UpdateWebhook struct {
	Name    *string         `json:"name,omitzero" required:"false" doc:"Unchanged when left out."`
	URL     *string         `json:"url,omitzero" required:"false" maxLength:"2000" doc:"Unchanged when left out."`
	Events  []EventSelector `json:"events,omitzero" required:"false" minItems:"1" maxItems:"50" nullable:"true" doc:"Unchanged when left out."`
	Enabled *bool           `json:"enabled,omitzero" required:"false" doc:"Whether events are sent; unchanged when left out."`
}

// DeletedWebhook is the result of deleting a webhook.
type DeletedWebhook struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// DeliveryStatus is the progress of a delivery. DeliveryDelivered and DeliveryFailed are final.
type DeliveryStatus string

const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Delivery is an event on its way to a webhook, or that arrived there or was given up.
type Delivery struct {
	ID            string         `json:"id"`
	WebhookID     string         `json:"webhook_id"`
	Event         Event          `json:"event" doc:"The body of its requests."`
	Status        DeliveryStatus `json:"status"`
	Attempts      int            `json:"attempts"`
	NextAttemptAt *time.Time     `json:"next_attempt_at" doc:"null unless it is pending."`
	LastAttemptAt *time.Time     `json:"last_attempt_at"`
	LastStatus    *int           `json:"last_status" doc:"HTTP status of the last response; null if there was none."`
	LastError     *string        `json:"last_error" doc:"Why the last attempt failed."`
	CreatedAt     time.Time      `json:"created_at"`
	CompletedAt   *time.Time     `json:"completed_at"`
}

// EventGap is a message of a stream that cannot resume where it was.
type EventGap struct {
	Message string `json:"message"`
}
