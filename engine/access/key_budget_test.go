package access

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestKeysOfKeysShareBudgets: a key does not get around its budgets by making others, nor by having those make others.
func TestKeysOfKeysShareBudgets(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	first := c.asKey(model.ActionKeyCreate, 0, model.Scopes()...)
	limit := c.cfg.Rates[model.RateCreateKey].Limit
	maker := first
	for n := range limit {
		if err := c.Authorize(maker); err != nil {
			t.Fatalf("key %d: %v", n, err)
		}
		_, key, err := c.KeyCreate(maker, NewKey{Name: fmt.Sprint(n), Scopes: model.Scopes()})
		if err != nil {
			t.Fatal(err)
		}
		maker = c.byKey(model.ActionKeyCreate, key)
	}
	for name, call := range map[string]*model.Call{"the first": first, "the last": maker} {
		if err := c.Authorize(call); model.CodeOf(err) != model.CodeRateLimited {
			t.Errorf("%s: %v", name, err)
		}
		if len(call.Budgets) != 1 || call.Budgets[0].Left != 0 {
			t.Errorf("%s is told of the budgets %+v", name, call.Budgets)
		}
	}
	if err := c.Authorize(c.asKey(model.ActionKeyCreate, 0, model.Scopes()...)); err != nil {
		t.Errorf("a key of the operator's: %v", err)
	}
}

// TestMakerIsReadAgain: a key that was revoked, or ends sooner, since its request began makes no key that outlives it.
func TestMakerIsReadAgain(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	call := c.asKey(model.ActionKeyCreate, 2*time.Hour, model.Scopes()...)
	hour := c.core.Clock().Add(time.Hour)
	if _, err := c.KeyUpdate(c.operator(model.ActionKeyUpdate), call.Key.ID, KeyChange{ExpiresAt: &hour}); err != nil {
		t.Fatal(err)
	}
	if _, key, err := c.KeyCreate(call, NewKey{Name: "brief", Preset: model.PresetReadOnly}); err != nil || key.ExpiresAt == nil || !key.ExpiresAt.Equal(hour) {
		t.Errorf("%+v, %v", key, err)
	}
	if _, err := c.KeyRevoke(c.operator(model.ActionKeyRevoke), call.Key.ID); err != nil {
		t.Fatal(err)
	}
	if _, key, err := c.KeyCreate(call, NewKey{Name: "late", Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("%+v, %v", key, err)
	}
}

// TestKeysAreLimited: an organization has at most MaxKeys keys that can be used.
func TestKeysAreLimited(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	operator := c.operator(model.ActionKeyCreate)
	_, first, err := c.KeyCreate(operator, NewKey{Name: "first", Preset: model.PresetReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.core.Meta.Update(func(tx *meta.Tx) error {
		all, _, err := tx.Keys().Newest(meta.ByOrganization, meta.Key(c.org), "", model.MaxKeys)
		for n := len(all); n < model.MaxKeys && err == nil; n++ {
			err = tx.Keys().Insert(model.Key{ID: fmt.Sprintf("key_%d", n), Organization: c.org, Hash: fmt.Append(nil, n)})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	another := NewKey{Name: "another", Preset: model.PresetReadOnly}
	if _, _, err := c.KeyCreate(operator, another); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("beyond the limit: %v", err)
	}
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(c.person("ada@example.com", model.RoleOwner), codes.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.poll(codes.Device); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("beyond the limit, by a device login: %v", err)
	}
	if _, err := c.KeyRevoke(c.operator(model.ActionKeyRevoke), first.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.KeyCreate(operator, another); err != nil {
		t.Errorf("after one was revoked: %v", err)
	}
}

// TestEndedKeysGiveWay: revoked and expired keys do not add up without end, since others wait while a new key is counted
// among them: it replaces the one that ended first. A use of that one which is still to be recorded does not lose those of others.
func TestEndedKeysGiveWay(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	ended := c.core.Clock().Add(-24 * time.Hour)
	const first, unaudited = "key_700", "key_100"
	if err := c.core.Meta.Update(func(tx *meta.Tx) (err error) {
		for n := 0; n < model.MaxKeys && err == nil; n++ {
			at := ended.Add(time.Duration(n) * time.Second)
			key := model.Key{ID: fmt.Sprintf("key_%03d", n), Organization: c.org, Hash: fmt.Append(nil, n), RevokedAt: &at}
			switch {
			case key.ID == unaudited: // the sweep comes to it later
				key.RevokedAt, key.ExpiresAt = nil, new(ended.Add(-2*time.Hour))
			case key.ID == first:
				key.RevokedAt, key.ExpiresAt, key.ExpiryAudited = nil, new(ended.Add(-time.Hour)), true
			case n%2 == 0:
				key.RevokedAt = nil
			}
			err = tx.Keys().Insert(key)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.core.Audits.Touch(first, core.KeyUse{At: ended})
	c.core.Audits.Touch("key_001", core.KeyUse{At: ended})
	_, key, err := c.KeyCreate(c.operator(model.ActionKeyCreate), NewKey{Name: "another", Preset: model.PresetReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	has := func(id string, want bool) {
		t.Helper()
		if _, err := c.KeyGet(c.operator(model.ActionKeyGet), id); (err == nil) != want || err != nil && model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("%s: %v", id, err)
		}
	}
	has(key.ID, true)
	has(first, false)
	has(unaudited, true)
	has("key_001", true)
	n := 0
	if err := c.core.Meta.View(func(tx *meta.Tx) error {
		n = tx.Keys().Count()
		return nil
	}); err != nil || n != model.MaxKeys {
		t.Errorf("%d keys, %v", n, err)
	}
	c.core.Finish(c.operator(model.ActionKeyList), nil)
	c.core.Audits.Close()
	if used, err := c.KeyGet(c.operator(model.ActionKeyGet), "key_001"); err != nil || used.LastUsedAt == nil {
		t.Errorf("a key that was used when one that is gone was: %+v, %v", used, err)
	}
}

// TestPeopleAreLimited: an organization has at most MaxPeople people, with those who are invited.
func TestPeopleAreLimited(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	if err := c.core.Meta.Update(func(tx *meta.Tx) (err error) {
		for n := 0; n < model.MaxPeople && err == nil; n++ {
			err = tx.Users().Insert(model.User{ID: fmt.Sprintf("user_%d", n), Organization: c.org, Email: fmt.Sprintf("%d@example.com", n)})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.UserInvite(c.operator(model.ActionUserInvite), "new@example.com", model.RoleViewer); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestExportEndsWithTheSession: an export of the audit log goes no further once its person is signed out.
func TestExportEndsWithTheSession(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	person := c.person("ada@example.com", model.RoleOwner)
	call := c.by(person, model.ActionAuditExport)
	call.Session = person.Session.TokenHash
	if _, _, err := c.UserSignOut(c.operator(model.ActionSessionEndAll), person.User.ID); err != nil {
		t.Fatal(err)
	}
	for name, each := range map[string]func(func([]model.AuditEntry) error) error{
		"all": func(use func([]model.AuditEntry) error) error {
			return c.core.AuditEach(t.Context(), call, core.AuditFilter{}, use)
		},
		"found": func(use func([]model.AuditEntry) error) error {
			return c.core.AuditEachFound(t.Context(), call, core.AuditQuery{}, use)
		},
	} {
		err := each(func([]model.AuditEntry) error {
			t.Errorf("%s: entries for somebody who is signed out", name)
			return nil
		})
		if model.CodeOf(err) != model.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
}
