package client

import (
	"context"
	"net/http"
)

type idempotencyKey struct{}

// WithIdempotencyKey lets the request made with the context be sent again
// without being carried out twice: within 24 hours the same request with the
// same key is given the first one's answer. It is for one request that
// creates or starts something, an upload too, and is not sent with methods other
// than POST. key is 1 to 255 printable ASCII characters.
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
