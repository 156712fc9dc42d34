package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/server/api/wire"
)

// ErrEventGap means that the appliance does not keep the events after the last one that
// was received any more. The stream goes on with those it has.
var ErrEventGap = errors.New("some events may be missing")

// EventOptions select the events of a stream.
type EventOptions struct {
	// After is the id of an event: the stream begins with those that follow it. Without
	// it, the stream begins now.
	After string
	// Type selects events; "" selects all that the key may see.
	Type wire.EventSelector
}

// GetEvents iterates over events as they happen, until ctx ends. It connects again where
// the connection is lost, and misses no event. It yields ErrEventGap and goes on if that
// was not possible; after any other error it ends.
func (c *Client) GetEvents(ctx context.Context, o EventOptions) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		err := c.followEvents(ctx, o, func(m message) (bool, error) {
			switch {
			case m.event == "gap":
				return yield(wire.Event{}, ErrEventGap), nil
			case m.data == nil:
				return true, nil
			}
			e, err := m.wireEvent()
			return err == nil && yield(e, nil), err
		})
		if err != nil {
			yield(wire.Event{}, err)
		}
	}
}

// followEvents is follow for the events that o selects.
func (c *Client) followEvents(ctx context.Context, o EventOptions, receive func(message) (bool, error)) error {
	query := url.Values{}
	if o.Type != "" {
		query.Set("type", string(o.Type))
	}
	next := func() Request {
		r := Request{Method: http.MethodGet, Path: "/events", Query: query, Header: http.Header{}}
		if o.After != "" {
			r.Header.Set("Last-Event-ID", o.After)
		}
		return r
	}
	return c.follow(ctx, next, func(m message) (bool, error) {
		o.After = cmp.Or(m.id, o.After)
		return receive(m)
	})
}

// GetOperationEvents iterates over the states of an operation, first the present one,
// until it has ended. It connects again where the connection is lost.
func (c *Client) GetOperationEvents(ctx context.Context, id string) iter.Seq2[wire.Operation, error] {
	return func(yield func(wire.Operation, error) bool) {
		next := func() Request {
			return Request{Method: http.MethodGet, Path: path("operations", id, "events")}
		}
		err := c.follow(ctx, next, func(m message) (bool, error) {
			if m.data == nil {
				return true, nil
			}
			var op wire.Operation
			if err := json.Unmarshal(m.data, &op); err != nil {
				return false, fmt.Errorf("read an operation: %w", err)
			}
			return yield(op, nil) && !op.Status.Final(), nil
		})
		if err != nil {
			yield(wire.Operation{}, err)
		}
	}
}

// message is a message of a stream. One without data only shows that the stream lasts,
// and where another one goes on.
type message struct {
	id, event string
	data      []byte
	first     bool // of a response
}

func (m message) wireEvent() (e wire.Event, err error) {
	if err = json.Unmarshal(m.data, &e); err != nil {
		err = fmt.Errorf("read an event: %w", err)
	}
	return e, err
}

// follow passes the messages of a stream to receive until that returns false or an error.
// It sends the request that next returns again where the connection is lost, and gives up
// when no message came for as long as the patience lasts.
func (c *Client) follow(ctx context.Context, next func() Request, receive func(message) (bool, error)) error {
	for away := (outage{}); ; {
		var ended bool
		var given error // by receive
		began := time.Now()
		err := c.stream(ctx, next(), func(m message) bool {
			away.began = time.Time{}
			more, err := receive(m)
			ended, given = !more || err != nil, err
			return !ended
		})
		if ended {
			return given
		}
		if time.Since(began) > lastPoll { // it lasted: it is not one of many that end at once
			away.pause = 0
		}
		if err := away.wait(ctx, err); err != nil {
			return err
		}
	}
}

// maxMessage is the maximum length of a line of a stream.
const maxMessage = 1 << 20

// stream reads one response of server-sent events.
func (c *Client) stream(ctx context.Context, r Request, receive func(message) bool) error {
	answer, err := c.Do(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := Refusal(answer); err != nil {
		return err
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "text/event-stream" {
		return notAPI(answer)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxMessage)
	for m := (message{first: true}); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data = append(bytes.Clone(m.data), value...)
		}
		if lines.Text() != "" {
			continue
		}
		if !receive(m) {
			return nil
		}
		m = message{}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // streams end only where the appliance stops
}
