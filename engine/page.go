package engine

import (
	"encoding/base64"

	"holdfast/engine/model"
)

// The bounds of a list's limit.
const (
	DefaultLimit = 50
	MaxLimit     = 100
)

// Page asks for a part of a list.
type Page struct {
	Limit  int    // 1 to MaxLimit; 0 means DefaultLimit
	Cursor string // from the page before, "" for the first
}

// List is a part of a list, newest first.
type List[T any] struct {
	Items []T
	// Next is the cursor of the next page, "" at the end.
	Next string
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return min(p.Limit, MaxLimit)
}

// longestPlace is the length of the longest id or version, in bytes.
const longestPlace = 64

// after returns the place in the list the cursor stands for.
func (p Page) after() (string, error) { return p.afterWithin(longestPlace) }

func (p Page) afterWithin(longest int) (string, error) {
	place, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err != nil || len(place) > longest {
		return "", badCursor()
	}
	return string(place), nil
}

func badCursor() error {
	return model.Invalid("cursor", "is not one that an earlier page gave as next_cursor")
}

func cursorAt(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// newList makes a List of the records found, with a cursor behind the last
// one when there are more.
func newList[T any](items []T, more bool, place func(T) string) List[T] {
	list := List[T]{Items: items}
	if more {
		list.Next = cursorAt(place(items[len(items)-1]))
	}
	return list
}
