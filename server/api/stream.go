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

// eventStream is the type of server-sent events.
const eventStream = "text/event-stream"

// stream is a response that is sent bit by bit. It begins with its first bytes, so an error before that has a status.
type stream struct {
	w     http.ResponseWriter
	kind  string // Content-Type
	began bool
	gone  bool // the client is
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
	return s.write([]byte(message + "data: " + string(text) + "\n\n"))
}

// beat sends a comment, so that proxies keep the connection and a gone client is noticed. With an id, which may be "",
// it tells the client where another stream goes on.
func (s *stream) beat(id string) error {
	if id != "" {
		return s.write([]byte("id: " + id + "\n:\n\n"))
	}
	return s.write([]byte(":\n\n"))
}

func (s *stream) write(text []byte) error {
	if !s.began {
		s.began = true
		for name, value := range map[string]string{"Content-Type": s.kind, "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
			s.w.Header().Set(name, value)
		}
	}
	control := http.NewResponseController(s.w)
	if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("limit the time of a write: %w", err)
	}
	_, err := s.w.Write(text)
	if err == nil {
		err = control.Flush()
	}
	s.gone = err != nil
	return err
}

// streaming registers a handler that answers with a stream of the type kind.
func streaming[I any](kind, description string, do func(context.Context, *model.Call, *I, *stream) error) registrar {
	return func(r *router, op huma.Operation) {
		op.Responses = map[string]*huma.Response{"200": {
			Description: description,
			Content:     map[string]*huma.MediaType{kind: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}}
		huma.Register(r.api, op, func(ctx context.Context, in *I) (*huma.StreamResponse, error) {
			x := gate.Of(ctx)
			s := &stream{w: x, kind: kind}
			err := s.run(x, r.gate.Engine.Core, func() error { return do(ctx, x.Call, in, s) })
			if err != nil && !s.began {
				return nil, fail(x, err)
			}
			if err != nil && !s.gone {
				x.Fail(err)
				panic(http.ErrAbortHandler) // cuts the response off, so that no client takes it for complete
			}
			return &huma.StreamResponse{Body: func(huma.Context) {}}, nil // all is sent, or the client is gone
		})
	}
}

// run counts the stream among the requests that wait.
func (s *stream) run(x *gate.Exchange, c *core.Core, send func() error) error {
	release, err := c.Watchers.Watch(x.Call)
	if err != nil {
		return err
	}
	defer release()
	control := http.NewResponseController(x)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the server's is for a request that ends
		return fmt.Errorf("let the stream last: %w", err)
	}
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests
	if x.Request.Method == http.MethodHead {
		return s.write(nil)
	}
	return send()
}

type eventsInput struct {
	LastEventID string             `header:"Last-Event-ID" pattern:"^event_[0-9a-z]{1,26}$" patternDescription:"the id of an event" doc:"The id of the last event received: the stream begins after it. Without it, the stream begins now."`
	Type        wire.EventSelector `query:"type" doc:"Only those that this selects."`
}

func (h *handlers) events(ctx context.Context, call *model.Call, in *eventsInput, s *stream) error {
	f := core.Follower{
		Valid: func() error { return h.engine.Core.CheckAuthority(call) },
		Event: func(e model.Event) error { return s.send(e.ID, "", NewEvent(e)) },
		Gap: func() error {
			return s.send("", "gap", wire.EventGap{Message: "The event that the stream is to begin after is not kept any more: some events may be missing."})
		},
		Beat: s.beat,
	}
	return h.engine.Core.FollowEvents(ctx, call, in.LastEventID, eventFilter(in.Type), f)
}

// eventFilter returns the filter for a selector, which may be "".
func eventFilter(selector wire.EventSelector) core.EventFilter {
	if selector == "" {
		return core.EventFilter{}
	}
	return core.EventFilter{Types: []string{string(selector)}}
}

func (h *handlers) operationEvents(ctx context.Context, call *model.Call, in *OperationInput, s *stream) error {
	return h.engine.Databases.OperationFollow(ctx, call, in.OperationID,
		func() error { return h.engine.Core.CheckAuthority(call) },
		func(op model.DatabaseOperation) error { return s.send("", "operation", NewOperation(op)) },
		func() error { return s.beat("") })
}
