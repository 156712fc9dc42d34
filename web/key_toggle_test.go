package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/model"
)

// TestToggleBelongsToPeople checks that a user can set a key's toggle on its
// page with forms that need no script. A viewer cannot, and a key without
// destructive scopes has no toggle.
func TestToggleBelongsToPeople(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	org, err := c.engine.Access.OrganizationList()
	if err != nil {
		t.Fatal(err)
	}
	call := &model.Call{Actor: model.Actor{Type: model.ActorOperator}, Organization: org[0].ID}
	secret, key, err := c.engine.Access.KeyCreate(call, access.NewKey{Name: "ci", Preset: model.PresetFullAccess, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	_, reader, err := c.engine.Access.KeyCreate(call, access.NewKey{Name: "reader", Preset: model.PresetReadOnly, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	wantToggle := func(want bool) {
		t.Helper()
		call := &model.Call{Operation: model.OperationFor(model.ActionDatabaseDelete)}
		if err := c.engine.Access.Authenticate(call, secret.Reveal()); err != nil {
			t.Fatal(err)
		}
		if err := c.engine.Access.Authorize(call); (err == nil) != want {
			t.Errorf("the key may delete: %v, want %v", err, want)
		}
	}
	page, on, off := "/keys/"+key.ID, url.Values{"allow_dangerous": {"on"}}, url.Values{"allow_dangerous": {"off"}}
	wantToggle(false)
	if text := c.get(t, page); !strings.Contains(text, "Let ci delete") || !strings.Contains(text, `action="/keys/`+key.ID+`/dangerous"`) {
		t.Errorf("the page has no way to turn it on: %s", text)
	}
	if got := c.post(t, page+"/dangerous", on); got.status != http.StatusSeeOther {
		t.Fatalf("turn it on: %d %s", got.status, got.page)
	}
	wantToggle(true)
	if text := c.get(t, page); !strings.Contains(text, "Stop it from deleting") {
		t.Errorf("the page has no way to turn it off: %s", text)
	}
	if got := c.post(t, page+"/dangerous", off); got.status != http.StatusSeeOther {
		t.Fatalf("turn it off: %d %s", got.status, got.page)
	}
	wantToggle(false)
	if got := c.post(t, page+"/dangerous", url.Values{}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("neither on nor off: %d", got.status)
	}

	viewer := c.as(t, "viewer@example.com", model.RoleViewer)
	if got := viewer.post(t, page+"/dangerous", on); got.status != http.StatusForbidden || strings.Contains(viewer.get(t, page), "/dangerous") {
		t.Errorf("a viewer: %d", got.status)
	}
	if got := c.nobody().post(t, page+"/dangerous", on); got.status != http.StatusSeeOther {
		t.Errorf("nobody signed in: %d", got.status)
	}
	wantToggle(false)
	if got := c.post(t, "/keys/"+reader.ID+"/dangerous", on); got.status != http.StatusUnprocessableEntity || strings.Contains(c.get(t, "/keys/"+reader.ID), "/dangerous") {
		t.Errorf("a key without a permission that deletes: %d", got.status)
	}
	if _, err := c.engine.Access.KeyRevoke(call, key.ID); err != nil {
		t.Fatal(err)
	}
	if got := c.post(t, page+"/dangerous", on); got.status != http.StatusConflict {
		t.Errorf("a revoked key: %d", got.status)
	}
	if text := c.get(t, "/audit?actor=user_unknown&action=key.allow_dangerous"); !strings.Contains(text, "Nothing found") {
		t.Errorf("the filter of the log: %s", text)
	}
	if text := c.get(t, "/audit?action=key.allow_dangerous"); !strings.Contains(text, key.ID) && !strings.Contains(text, "ci") {
		t.Errorf("the log does not have it: %s", text)
	}
}
