package ctxio

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the client has gone")
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		began = time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, cause) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
