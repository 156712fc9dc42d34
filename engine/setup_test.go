package engine

import (
	"context"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestUnshownKey opens an appliance repeatedly: its first key is replaced until it has been shown to somebody, and not
// after that.
func TestUnshownKey(t *testing.T) {
	cfg := testConfig(t, newDataDir(t))
	start := func(withKey, shown bool) *access.FirstStart {
		t.Helper()
		e, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		first, err := e.Access.Initialize(withKey)
		if err == nil && shown {
			err = e.Access.KeyShown()
		}
		if err != nil {
			t.Fatal(err)
		}
		keys, err := e.Access.KeyList(&model.Call{Organization: orgOf(t, e)}, access.KeyFilter{}, core.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys.Items { // newest first
			if usable := i == 0 && withKey; usable != (key.RevokedAt == nil) {
				t.Errorf("key %d of %d: revoked at %v", i, len(keys.Items), key.RevokedAt)
			}
		}
		return first
	}
	unshown := start(true, false)
	replaced := start(true, false)
	if replaced == nil || replaced.Key.IsZero() || replaced.Setup.IsZero() || replaced.Organization.ID != unshown.Organization.ID ||
		replaced.Key.Reveal() == unshown.Key.Reveal() {
		t.Fatalf("the second start: %+v", replaced)
	}
	if none := start(false, false); none == nil || !none.Key.IsZero() {
		t.Errorf("no key is wanted any more: %+v", none)
	}
	if again := start(false, false); again != nil {
		t.Errorf("there is nothing to replace: %+v", again)
	}
	cfg = testConfig(t, newDataDir(t))
	start(true, true)
	if again := start(true, false); again != nil {
		t.Errorf("a key that was shown is replaced: %+v", again)
	}
}

func orgOf(t *testing.T, e *Engine) string {
	t.Helper()
	org, err := e.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	return org.ID
}
