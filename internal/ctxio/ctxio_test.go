package ctxio

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := NewReader(ctx, strings.NewReader("abcdef"))
	three := make([]byte, 3)
	if n, err := io.ReadFull(r, three); err != nil || string(three[:n]) != "abc" {
		t.Fatalf("%q, %v", three[:n], err)
	}
	cause := errors.New("the client has gone")
	cancel(cause)
	if n, err := r.Read(three); n != 0 || !errors.Is(err, cause) {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
}
