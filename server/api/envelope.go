package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/gate"
)

// Meta is about the answer, not about what was asked for.
type Meta struct {
	RequestID string `json:"request_id" doc:"Id of this request, also in the header X-Request-Id and in the audit log."`
}

// ListMeta is the Meta of lists.
type ListMeta struct {
	Meta
	NextCursor *string `json:"next_cursor" doc:"Send it as cursor to get the next page; null on the last page."`
}

// LogMeta is the Meta of logs.
type LogMeta struct {
	Meta
	HasNext bool `json:"has_next" doc:"Whether there is a next page."`
}

// Envelope wraps every successful answer.
type Envelope[T, M any] struct {
	Data T `json:"data"`
	Meta M `json:"meta"`
}

// answer is how huma wants an Envelope.
type answer[T, M any] struct {
	Body Envelope[T, M]
}

// registrar puts a handler behind a route.
type registrar func(*router, huma.Operation)

// one registers a handler that answers a single record.
func one[I, T any](do func(context.Context, *model.Call, *I) (T, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) (T, Meta, error) {
		data, err := do(ctx, call, in)
		return data, metaOf(call), err
	})
}

// list registers a handler that answers a page of records.
func list[I, T any](do func(context.Context, *model.Call, *I) (core.List[T], error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, ListMeta, error) {
		page, err := do(ctx, call, in)
		meta := ListMeta{Meta: metaOf(call)}
		if page.Next != "" {
			meta.NextCursor = &page.Next
		}
		return page.Items, meta, err
	})
}

// FolderMeta is the Meta of a list that can be folded into folders.
type FolderMeta struct {
	ListMeta
	CommonPrefixes []string `json:"common_prefixes" doc:"With a delimiter: the folders of this page, each ending with it."`
}

// folder registers a handler that answers a page of records and folders.
func folder[I, T any](do func(context.Context, *model.Call, *I) (core.List[T], []string, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, FolderMeta, error) {
		page, prefixes, err := do(ctx, call, in)
		meta := FolderMeta{ListMeta: ListMeta{Meta: metaOf(call)}, CommonPrefixes: append([]string{}, prefixes...)}
		if page.Next != "" {
			meta.NextCursor = &page.Next
		}
		return page.Items, meta, err
	})
}

// numbered registers a handler that answers a numbered page, and whether there is
// a next one.
func numbered[I, T any](do func(context.Context, *model.Call, *I) ([]T, bool, error)) registrar {
	return respond(func(ctx context.Context, call *model.Call, in *I) ([]T, LogMeta, error) {
		entries, more, err := do(ctx, call, in)
		return entries, LogMeta{Meta: metaOf(call), HasNext: more}, err
	})
}

func respond[I, T, M any](do func(context.Context, *model.Call, *I) (T, M, error)) registrar {
	return func(r *router, op huma.Operation) {
		huma.Register(r.api, op, func(ctx context.Context, in *I) (*answer[T, M], error) {
			data, meta, err := do(ctx, gate.CallOf(ctx), in)
			if err == nil {
				err = keep(ctx, data)
			}
			if first, ok := errors.AsType[*core.FirstAnswer](err); ok {
				return nil, replay(ctx, first)
			}
			if err != nil {
				return nil, fail(ctx, err)
			}
			return &answer[T, M]{Body: Envelope[T, M]{Data: data, Meta: meta}}, nil
		})
	}
}

func metaOf(call *model.Call) Meta { return Meta{RequestID: call.RequestID} }

// convert makes the wire form of every item; the result is never nil, since
// arrays are never null.
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
