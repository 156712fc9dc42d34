package engine

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

// walk is the way through a list, page by page. A cursor is a place in the
// list, signed for that list alone: in another, or in one of other parameters,
// it would lead past what was never shown.
type walk struct {
	signer signer
	list   string
	after  string // the place that the page begins behind, "" for the first
	limit  int
}

// walk begins to read a page of a list, of which the parameters say of what and
// which it is. (The call may be about something else: who has changed one of a
// list is shown the list.)
func (e *Engine) walk(call *model.Call, list model.Action, page Page, parameters ...string) (walk, error) {
	w := walk{
		signer: e.signer, limit: page.limit(),
		list: fmt.Sprintf("cursor\n%q", append([]string{call.Organization, string(list)}, parameters...)),
	}
	if page.Cursor == "" {
		return w, nil
	}
	if signed, err := base64.RawURLEncoding.DecodeString(page.Cursor); err == nil && len(signed) > cursorSignature {
		w.after = string(signed[cursorSignature:])
		if w.cursorAt(w.after) == page.Cursor {
			return w, nil
		}
	}
	return walk{}, model.Invalid("cursor", "is not one that an earlier page of this list gave as next_cursor")
}

// cursorSignature is how much of a signature a cursor has, in bytes: enough
// for what gives nobody any right.
const cursorSignature = 8

func (w walk) cursorAt(place string) string {
	signature := w.signer.sign(w.list + "\n" + place)[:cursorSignature]
	return base64.RawURLEncoding.EncodeToString(append(signature, place...))
}

// newList makes a List of the records found, with a cursor behind the last
// one when there are more.
func newList[T any](w walk, items []T, more bool, place func(T) string) List[T] {
	list := List[T]{Items: items}
	if more {
		list.Next = w.cursorAt(place(items[len(items)-1]))
	}
	return list
}
