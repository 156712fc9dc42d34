package remote

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// written cancels once a text is printed.
type written struct {
	text   strings.Builder
	until  string
	cancel context.CancelFunc
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if strings.Contains(w.text.String(), w.until) {
		w.cancel()
	}
	return n, err
}

// TestRawStream: a stream is printed as it comes.
func TestRawStream(t *testing.T) {
	const events = "id: 1\ndata: {}\n\n"
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	out := &written{until: events, cancel: cancel}
	_, err := runWithin(t, ctx, out, map[string]any{"GET /v1/events": streamed(events)}, "api", "GET", "/events")
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(out.text.String(), events) {
		t.Errorf("%v\n%s", err, out.text.String())
	}
}
