package client

import (
	"context"
	"net/http"
)

type idempotencyKey struct{}

// WithIdempotencyKey makes the request sent with the context safe to retry: for
// 24 hours, the same request with the same key gets the first one's response. It
// is for a single request that creates or starts something, including an upload,
// and applies only to POST. key is 1 to 255 printable ASCII characters.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

func idempotencyHeader(ctx context.Context, method string) http.Header {
	key, given := ctx.Value(idempotencyKey{}).(string)
	if !given || method != http.MethodPost {
		return nil
	}
	return http.Header{"Idempotency-Key": {key}}
}
