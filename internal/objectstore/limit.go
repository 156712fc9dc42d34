package objectstore

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// limitUpload returns a reader of r that keeps to a limiter, or r without one.
func limitUpload(ctx context.Context, r io.Reader, limiter *rate.Limiter) io.Reader {
	if limiter == nil {
		return r
	}
	return &limited{ctx, r, limiter}
}

type limited struct {
	ctx     context.Context
	r       io.Reader
	limiter *rate.Limiter
}

// Read implements io.Reader. It waits after reading, for what was read.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(len(p), l.burst())])
	for left := n; left > 0; {
		part := min(left, l.burst())
		if waitErr := l.limiter.WaitN(l.ctx, part); waitErr != nil {
			return 0, waitErr
		}
		left -= part
	}
	return n, err
}

func (l *limited) burst() int { return max(1, l.limiter.Burst()) }
