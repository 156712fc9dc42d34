// Package ctxio has readers and pauses that end with a context.
package ctxio

import (
	"context"
	"io"
	"time"
)

// NewReader returns a reader of r that fails with the cause of ctx once ctx has ended.
// A call of r.Read that is under way is not interrupted.
func NewReader(ctx context.Context, r io.Reader) io.Reader { return &reader{ctx, r} }

type reader struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	r   io.Reader
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Sleep waits for d. It returns the cause of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
