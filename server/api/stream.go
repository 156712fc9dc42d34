package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// writeTimeout is how long a client may take to receive one message of a stream.
const writeTimeout = 30 * time.Second

// stream is a response of server-sent events. It begins with its first message, so an error before that has a status.
type stream struct {
	x     *gate.Exchange
	began bool
}

// send sends one message. id and event may be "".
func (s *stream) send(id, event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	message := ""
	if id != "" {
		message = "id: " + id + "\n"
	}
	if event != "" {
		message += "event: " + event + "\n"
	}
	return s.write(message + "data: " + string(text) + "\n\n")
}

// beat sends a comment, so that proxies keep the connection and a gone client is noticed.
func (s *stream) beat() error { return s.write(":\n\n") }

func (s *stream) write(text string) error {
	if !s.began {
		s.began = true
		for name, value := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
			s.x.Header().Set(name, value)
		}
	}
	control := http.NewResponseController(s.x)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("limit the time of a write: %w", err)
	}
	if _, err := s.x.Write([]byte(text)); err != nil {
		return err
	}
	return control.Flush()
}

// streaming registers a handler that answers with a stream.
func streaming[I any](do func(context.Context, *model.Call, *I, *stream) error) registrar {
	return func(r *router, op huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {
			Description: "Server-sent events, until the client or the appliance ends them.",
			Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
		}}
		huma.Register(r.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
			s := &stream{x: gate.Of(ctx)}
			err := s.run(ctx, r.gate.Engine.Core, func() error { return do(ctx, s.x.Call, in, s) })
			if err != nil && !s.began {
				return nil, fail(s.x, err)
			}
			return &huma.StreamResponse{Body: func(huma.Context) {}}, nil // all is sent, or the client is gone
		})
	}
}

// run counts the stream among the requests that wait.
func (s *stream) run(ctx context.Context, c *core.Core, follow func() error) error {
	release, err := c.Watchers.Watch(s.x.Call)
	if err != nil {
		return err
	}
	defer release()
	control := http.NewResponseController(s.x)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the server's is for a request that ends
		return fmt.Errorf("let the stream last: %w", err)
	}
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	if s.x.Request.Method == http.MethodHead {
		return s.beat()
	}
	return follow()
}

type eventsInput struct {
	LastEventID string             `header:"Last-Event-ID" pattern:"^event_[0-9a-z]{1,26}$" patternDescription:"the id of an event" doc:"The id of the last event received: the stream begins after it. Without it, the stream begins now."`
	Type        wire.EventSelector `query:"type" doc:"Only those that this selects."`
}

func (h *handlers) events(ctx context.Context, call *model.Call, in *eventsInput, s *stream) error {
	var filter core.EventFilter
	if in.Type != "" {
		filter.Types = []string{string(in.Type)}
	}
	f := core.Follower{
		Valid: func() error { return h.engine.Access.StillValid(call) },
		Event: func(e model.Event) error { return s.send(e.ID, "", NewEvent(e)) },
		Gap: func() error {
			return s.send("", "gap", wire.EventGap{Message: "The event that the stream is to begin after is not kept any more: some events may be missing."})
		},
		Beat: s.beat,
	}
	return h.engine.Core.FollowEvents(ctx, call, in.LastEventID, filter, f)
}

func (h *handlers) operationEvents(ctx context.Context, call *model.Call, in *OperationInput, s *stream) error {
	return h.engine.Databases.OperationFollow(ctx, call, in.OperationID,
		func() error { return h.engine.Access.StillValid(call) },
		func(op model.DatabaseOperation) error { return s.send("", "operation", NewOperation(op)) },
		s.beat)
}
