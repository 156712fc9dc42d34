package access

import (
	"time"

	"holdfast/engine/model"
)

// withinMaker refuses to let a key make one that may do more than itself, or for longer.
// A key without an expiry of its own gets that of its maker, and all draw on the budgets
// of the first.
func withinMaker(maker model.Key, key *model.Key) error {
	if key.AllowDangerous {
		return noToggleByKey()
	}
	for _, scope := range key.Scopes {
		if !maker.Holds(scope) {
			return model.Errorf(model.CodeInsufficientScope, "this key lacks the scope %s, so it cannot give it to another key", scope)
		}
	}
	key.Budgets = maker.BudgetOwner()
	limit := maker.ExpiresAt
	switch {
	case limit == nil:
	case key.ExpiresAt == nil:
		key.ExpiresAt = limit
	case key.ExpiresAt.After(*limit):
		return model.Errorf(model.CodeForbidden, "this key expires at %s, and a key that it makes cannot be valid for longer", limit.UTC().Format(time.RFC3339))
	}
	return nil
}

// noToggleByKey is the error of a key that would turn a dangerous-operations toggle on or off.
func noToggleByKey() error {
	return model.Errorf(model.CodeForbidden,
		"allow_dangerous: only a person turns it on or off, on the key's page in the console; the operator can with `holdfast admin key update`")
}
