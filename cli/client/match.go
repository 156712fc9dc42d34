package client

import (
	"context"
	"maps"
	"net/http"
)

type (
	ifMatch  struct{}
	etagInto struct{}
	// ifNoneMatch marks requests that must not replace anything.
	ifNoneMatch struct{}
)

// WithETag makes requests that are sent with the context store the ETag of the resource in *tag, "" if the response has none.
func WithETag(ctx context.Context, tag *string) context.Context {
	return context.WithValue(ctx, etagInto{}, tag)
}

// WithIfMatch makes a change that is sent with the context conditional: the API makes it only if the resource still has
// this ETag, and else refuses it with status 412. It is for changes of databases, buckets and allow-lists.
func WithIfMatch(ctx context.Context, tag string) context.Context {
	return context.WithValue(ctx, ifMatch{}, tag)
}

// conditions returns the headers that make a request conditional or repeatable.
func conditions(ctx context.Context, method string) http.Header {
	switch method {
	case http.MethodPost:
		header := http.Header{}
		maps.Copy(header, idempotencyHeader(ctx, method))
		if ctx.Value(ifNoneMatch{}) != nil {
			header.Set("If-None-Match", "*")
		}
		return header
	case http.MethodGet:
		return nil
	}
	if tag, given := ctx.Value(ifMatch{}).(string); given {
		return http.Header{"If-Match": {tag}}
	}
	return nil
}

// noteETag stores the ETag of a response for WithETag.
func noteETag(ctx context.Context, answer *http.Response) {
	if tag, wanted := ctx.Value(etagInto{}).(*string); wanted {
		*tag = answer.Header.Get("ETag")
	}
}
