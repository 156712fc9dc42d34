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

// Page requests a part of a list.
type Page struct {
	Limit  int    // 1 to MaxLimit; 0 means DefaultLimit
	Cursor string // from the previous page, "" for the first
}

// List is one page of a list, in the list's order.
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

// Walk pages through a list. A cursor is a position in the list, signed for that
// list and its parameters: in another list it would skip unseen items.
type Walk struct {
	signer Signer
	list   string
	After  string // position after which the page starts, "" for the first
	Limit  int
}

// Walk starts reading a page of a list, which the action and the parameters identify.
// The call may be about something else: after a change to an item, the client is
// shown the list.
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

// cursorSignature is the length of a cursor's signature in bytes. A short one
// suffices, because a cursor grants no rights.
const cursorSignature = 8

func (w Walk) CursorAt(place string) string {
	signature := w.signer.Sign(w.list + "\n" + place)[:cursorSignature]
	return base64.RawURLEncoding.EncodeToString(append(signature, place...))
}

// NewList returns a List of items, with a cursor after the last one if there are
// more.
func NewList[T any](w Walk, items []T, more bool, place func(T) string) List[T] {
	list := List[T]{Items: items}
	if more {
		list.Next = w.CursorAt(place(items[len(items)-1]))
	}
	return list
}
