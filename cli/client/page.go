package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// ListOptions select a page of a list.
type ListOptions struct {
	Limit  int    // maximum number of items, 1 to 100; 0 means the API's default
	Cursor string // Page.Next of the previous page
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	if o.Limit > 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Cursor != "" {
		q.Set("cursor", o.Cursor)
	}
	return q
}

// Filter selects records of a list by what most of them have. An empty field
// selects all.
type Filter struct {
	Project                     string // id
	Name                        string
	CreatedAfter, CreatedBefore time.Time
}

func (f Filter) add(q url.Values) url.Values {
	setTexts(q, map[string]string{"project": f.Project, "name": f.Name})
	return setTimes(q, map[string]time.Time{"created_after": f.CreatedAfter, "created_before": f.CreatedBefore})
}

// setTexts sets the parameters that have a value.
func setTexts[T ~string](q url.Values, texts map[string]T) url.Values {
	for name, value := range texts {
		if value != "" {
			q.Set(name, string(value))
		}
	}
	return q
}

// setTimes is setTexts for times.
func setTimes(q url.Values, times map[string]time.Time) url.Values {
	for name, at := range times {
		if !at.IsZero() {
			q.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return q
}

// Page is a part of a list, newest first.
type Page[T any] struct {
	Items []T
	Next  string // cursor of the next page, "" on the last
}

// list requests a page.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) (Page[T], error) {
	items, m, err := call[[]T](ctx, c, "GET", path, query, nil)
	return pageOf(items, m), err
}

func pageOf[T any](items []T, m meta) Page[T] {
	page := Page[T]{Items: items}
	if m.NextCursor != nil {
		page.Next = *m.NextCursor
	}
	return page
}

// maxLimit is the largest page size.
const maxLimit = 100

// all iterates over the records that options select, page by page.
func all[O, T any](ctx context.Context, o O, page func(*O) *ListOptions, list func(context.Context, O) (Page[T], error)) iter.Seq2[T, error] {
	return All(ctx, func(ctx context.Context, at ListOptions) (Page[T], error) {
		*page(&o) = at
		return list(ctx, o)
	})
}

// All iterates over a list page by page. An error ends the iteration.
func All[T any](ctx context.Context, list func(context.Context, ListOptions) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for o := (ListOptions{Limit: maxLimit}); ; {
			page, err := list(ctx, o)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if o.Cursor = page.Next; o.Cursor == "" {
				return
			}
		}
	}
}
