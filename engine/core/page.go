package core

import (
	"encoding/base64"
	"fmt"

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

// List is a part of a list, in the list's order.
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

// Walk is the way through a list, page by page. A cursor is a place in the
// list, signed for that list alone: in another, or in one of other parameters,
// it would lead past what was never shown.
type Walk struct {
	signer Signer
	list   string
	After  string // the place that the page begins behind, "" for the first
	Limit  int
}

// Walk begins to read a page of a list, of which the parameters say of what and
// which it is. (The call may be about something else: who has changed one of a
// list is shown the list.)
func (c *Core) Walk(call *model.Call, list model.Action, page Page, parameters ...string) (Walk, error) {
	w := Walk{
		signer: c.Signer, Limit: page.limit(),
		list: fmt.Sprintf("cursor\n%q", append([]string{call.Organization, string(list)}, parameters...)),
	}
	if page.Cursor == "" {
		return w, nil
	}
	if signed, err := base64.RawURLEncoding.DecodeString(page.Cursor); err == nil && len(signed) > cursorSignature {
		w.After = string(signed[cursorSignature:])
		if w.CursorAt(w.After) == page.Cursor {
			return w, nil
		}
	}
	return Walk{}, model.Invalid("cursor", "is not one that an earlier page of this list gave as next_cursor")
}

// cursorSignature is how much of a signature a cursor has, in bytes: enough
// for what gives nobody any right.
const cursorSignature = 8

func (w Walk) CursorAt(place string) string {
	signature := w.signer.Sign(w.list + "\n" + place)[:cursorSignature]
	return base64.RawURLEncoding.EncodeToString(append(signature, place...))
}

// NewList makes a List of the records found, with a cursor behind the last
// one when there are more.
func NewList[T any](w Walk, items []T, more bool, place func(T) string) List[T] {
	list := List[T]{Items: items}
	if more {
		list.Next = w.CursorAt(place(items[len(items)-1]))
	}
	return list
}
