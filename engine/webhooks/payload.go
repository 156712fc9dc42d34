package webhooks

import (
	"encoding/json"
	"time"

	"holdfast/engine/model"
)

// payload is the body of a request.
type payload struct {
	ID        string          `json:"id"`
	Type      model.EventType `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      data            `json:"data"`
}

type data struct {
	Organization *string         `json:"organization"`
	Resource     *model.Resource `json:"resource"`
	DatabaseID   *string         `json:"database_id"`
	OperationID  *string         `json:"operation_id"`
	Message      string          `json:"message"`
}

// Payload returns the body of requests about an event. It is the JSON of wire.Event.
func Payload(e model.Event) []byte {
	p := payload{ID: e.ID, Type: e.Type, Timestamp: e.At, Data: data{
		Organization: orNull(e.Organization), DatabaseID: orNull(e.Database), OperationID: orNull(e.Operation), Message: e.Message,
	}}
	if e.Resource.Type != model.ResourceNone {
		p.Data.Resource = &e.Resource
	}
	body, _ := json.Marshal(p) // texts and a time can always be encoded
	return body
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
