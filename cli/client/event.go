package client

import (
	"bufio"
	"bytes"
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
		err := c.follow(ctx, next, func(m message) (bool, error) {
			if m.event == "gap" {
				return yield(wire.Event{}, ErrEventGap), nil
			}
			var e wire.Event
			if err := json.Unmarshal(m.data, &e); err != nil {
				return false, fmt.Errorf("read an event: %w", err)
			}
			o.After = m.id
			return yield(e, nil), nil
		})
		if err != nil {
			yield(wire.Event{}, err)
		}
	}
}

// GetOperationEvents iterates over the states of an operation, first the present one,
// until it has ended. It connects again where the connection is lost.
func (c *Client) GetOperationEvents(ctx context.Context, id string) iter.Seq2[wire.Operation, error] {
	return func(yield func(wire.Operation, error) bool) {
		next := func() Request {
			return Request{Method: http.MethodGet, Path: path("operations", id, "events")}
		}
		err := c.follow(ctx, next, func(m message) (bool, error) {
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

// message is a message of a stream.
type message struct {
	id, event string
	data      []byte
}

// follow passes the messages of a stream to receive until that returns false or an error.
// It sends the request that next returns again where the connection is lost, for as long
// as the patience lasts.
func (c *Client) follow(ctx context.Context, next func() Request, receive func(message) (bool, error)) error {
	pause, lost := firstPoll, time.Time{}
	for {
		var ended bool
		var given error // by receive
		err := c.stream(ctx, next(), func(m message) bool {
			pause, lost = firstPoll, time.Time{}
			more, err := receive(m)
			ended, given = !more || err != nil, err
			return !ended
		})
		switch {
		case ended:
			return given
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!passes(ctx, err) || !lost.IsZero() && time.Since(lost) > patience):
			return err
		case lost.IsZero():
			lost = time.Now()
		}
		if err := sleep(ctx, max(pause, retryAfter(err))); err != nil {
			return err
		}
		pause = min(pause*3/2, lastPoll)
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
	var m message
	for lines.Scan() {
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
		if m.data != nil && !receive(m) {
			return nil
		}
		m = message{}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF // streams end only where the appliance stops
}
