package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// answer is an Envelope in the form that huma requires.
type answer[T, M any] struct {
	Body wire.Envelope[T, M]
}

// registrar adds a handler to a route.
type registrar func(*router, huma.Operation)

// one registers a handler that returns a single record.
func one[I, T any](do func(context.Context, *model.Call, *I) (T, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) (T, wire.Meta, error) {
		data, err := do(ctx, call, in)
		return data, metaOf(call), err
	})
}

// list registers a handler that returns a page of records.
func list[I, T any](do func(context.Context, *model.Call, *I) (core.List[T], error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, wire.ListMeta, error) {
		page, err := do(ctx, call, in)
		meta := wire.ListMeta{Meta: metaOf(call)}
		if page.Next != "" {
			meta.NextCursor = &page.Next
		}
		return page.Items, meta, err
	})
}

// folder registers a handler that returns a page of records and folders.
func folder[I, T any](do func(context.Context, *model.Call, *I) (core.List[T], []string, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, wire.FolderMeta, error) {
		page, prefixes, err := do(ctx, call, in)
		meta := wire.FolderMeta{ListMeta: wire.ListMeta{Meta: metaOf(call)}, CommonPrefixes: append([]string{}, prefixes...)}
		if page.Next != "" {
			meta.NextCursor = &page.Next
		}
		return page.Items, meta, err
	})
}

// numbered registers a handler that returns a numbered page, and whether there is a next one.
func numbered[I, T any](do func(context.Context, *model.Call, *I) ([]T, bool, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, wire.LogMeta, error) {
		entries, more, err := do(ctx, call, in)
		return entries, wire.LogMeta{Meta: metaOf(call), HasNext: more}, err
	})
}

func respond[I, T, M any](do func(context.Context, *model.Call, *I) (T, M, error)) registrar {
	return func(r *router, op huma.Operation) {
		huma.Register(r.api, op, func(ctx context.Context, in *I) (*answer[T, M], error) {
			x := gate.Of(ctx)
			data, meta, err := do(ctx, x.Call, in)
			if err == nil {
				err = x.Keep(data, encodeJSON)
			}
			if first, ok := errors.AsType[*core.FirstAnswer](err); ok {
				x.Replay()
				return nil, &repeated{wire.Envelope[json.RawMessage, wire.Meta]{Data: first.Data, Meta: metaOf(x.Call)}}
			}
			if err != nil {
				return nil, fail(x, err)
			}
			if x.Call.ETag != "" {
				x.Header()["Etag"] = []string{x.Call.ETag}
			}
			return &answer[T, M]{Body: wire.Envelope[T, M]{Data: data, Meta: meta}}, nil
		})
	}
}

// streamed registers a handler that reads the request body itself. It hides the body from huma, which would read it
// into memory. body describes it.
func streamed(register registrar, body func(huma.Registry) *huma.RequestBody) registrar {
	return func(r *router, op huma.Operation) {
		register(r, op)
		doc := r.api.OpenAPI()
		doc.Paths[op.Path].Post.RequestBody = body(doc.Components.Schemas)
	}
}

func metaOf(call *model.Call) wire.Meta { return wire.Meta{RequestID: call.RequestID} }

// convert returns the wire form of every item. The result is never nil, since arrays are never null.
func convert[T, V any](items []T, view func(T) V) []V {
	views := make([]V, len(items))
	for i, item := range items {
		views[i] = view(item)
	}
	return views
}

// convertList is convert for a page.
func convertList[T, V any](page core.List[T], view func(T) V) core.List[V] {
	return core.List[V]{Items: convert(page.Items, view), Next: page.Next}
}
