package access

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// asKey returns a call by a new key with these scopes that expires after life, or never.
func (c *console) asKey(action model.Action, life time.Duration, scopes ...model.Scope) *model.Call {
	c.t.Helper()
	_, key, err := c.KeyCreate(c.operator(model.ActionKeyCreate), NewKey{Name: "caller", Scopes: scopes, ExpiresIn: life})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.byKey(action, key)
}

// byKey returns a call by a key.
func (c *console) byKey(action model.Action, key model.Key) *model.Call {
	return &model.Call{
		Operation: model.OperationFor(action), Organization: key.Organization, Key: &key,
		Actor: model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name},
	}
}

// TestKeysGiveAtMostWhatTheyHave: a key that a key makes has no scope more, does not live longer, and deletes nothing.
func TestKeysGiveAtMostWhatTheyHave(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	hour := c.core.Clock().Add(time.Hour)
	soon, late := hour.Add(-time.Minute), hour.Add(time.Second)
	for _, test := range []struct {
		name string
		life time.Duration
		in   NewKey
		code model.Code
		ends *time.Time
	}{
		{"a part", 0, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}}, "", nil},
		{"everything", 0, NewKey{Scopes: []model.Scope{model.ScopeKeyManage, model.ScopeDatabaseRead}}, "", nil},
		{"a scope more", 0, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead, model.ScopeDatabaseCreate}}, model.CodeInsufficientScope, nil},
		{"a preset", 0, NewKey{Preset: model.PresetReadOnly}, model.CodeInsufficientScope, nil},
		{"the toggle", 0, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}, AllowDangerous: true}, model.CodeForbidden, nil},
		{"no end of its own", time.Hour, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}}, "", &hour},
		{"an earlier end", time.Hour, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}, ExpiresAt: &soon}, "", &soon},
		{"a later end", time.Hour, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}, ExpiresAt: &late}, model.CodeForbidden, nil},
		{"an end that is over", 0, NewKey{Scopes: []model.Scope{model.ScopeDatabaseRead}, ExpiresAt: new(hour.Add(-time.Hour))}, model.CodeValidation, nil},
	} {
		test.in.Name = test.name
		call := c.asKey(model.ActionKeyCreate, test.life, model.ScopeKeyManage, model.ScopeDatabaseRead)
		call.Key.AllowDangerous = true // it cannot give that either
		_, key, err := c.KeyCreate(call, test.in)
		if model.CodeOf(err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil {
			continue
		}
		if key.AllowDangerous || (key.ExpiresAt == nil) != (test.ends == nil) || test.ends != nil && !key.ExpiresAt.Equal(*test.ends) {
			t.Errorf("%s: %+v", test.name, key)
		}
	}
}

// TestKeysShortenOnly: a key makes keys expire sooner, and no key turns the toggle of one on or off.
func TestKeysShortenOnly(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	operator := c.operator(model.ActionKeyCreate)
	_, target, err := c.KeyCreate(operator, NewKey{Name: "target", Preset: model.PresetFullAccess, AllowDangerous: true, ExpiresIn: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	change := func(call *model.Call, in KeyChange, want model.Code) {
		t.Helper()
		if _, err := c.KeyUpdate(call, target.ID, in); model.CodeOf(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	key := c.asKey(model.ActionKeyUpdate, 0, model.Scopes()...)
	now := c.core.Clock()
	change(key, KeyChange{ExpiresAt: new(now.Add(2 * time.Hour))}, model.CodeForbidden)
	change(key, KeyChange{ExpiresAt: new(time.Time{})}, model.CodeForbidden)
	change(key, KeyChange{ExpiresAt: new(now.Add(-time.Second))}, model.CodeValidation)
	change(key, KeyChange{AllowDangerous: new(false)}, model.CodeForbidden)
	change(key, KeyChange{Name: new("")}, model.CodeValidation)
	change(key, KeyChange{Name: new("renamed"), ExpiresAt: new(now.Add(time.Minute))}, "")
	for _, allow := range []bool{true, false} {
		if _, err := c.KeyAllowDangerous(c.byKey(model.ActionKeyUpdate, target), target.ID, allow); model.CodeOf(err) != model.CodeForbidden {
			t.Errorf("a key sets its own toggle to %t: %v", allow, err)
		}
	}
	person := c.by(c.person("ada@example.com", model.RoleAdmin), model.ActionKeyUpdate)
	change(person, KeyChange{ExpiresAt: new(now.Add(2 * time.Hour))}, "")
	change(person, KeyChange{ExpiresAt: new(time.Time{})}, "")
	got, err := c.KeyGet(person, target.ID)
	if err != nil || got.Name != "renamed" || got.ExpiresAt != nil || !got.AllowDangerous {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestProjects: a project is renamed and deleted, unless it holds something or is the only one.
func TestProjects(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	call := c.operator(model.ActionProjectCreate)
	want := func(what string, err error, code model.Code) {
		t.Helper()
		if model.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	all, err := c.Projects(call)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	want("the only project", c.ProjectDelete(call, all[0].ID), model.CodeConflict)
	lab, err := c.ProjectCreate(call, "lab")
	want("create", err, "")
	_, err = c.ProjectRename(call, lab.ID, "default")
	want("a name that is taken", err, model.CodeConflict)
	_, err = c.ProjectRename(call, lab.ID, " ")
	want("no name", err, model.CodeValidation)
	stale := c.operator(model.ActionProjectUpdate)
	stale.IfMatch = []string{lab.Tag()}
	_, err = c.ProjectRename(call, lab.ID, "bench")
	want("rename", err, "")
	want("delete what has changed", c.ProjectDelete(stale, lab.ID), model.CodeConflict)
	found, err := c.ProjectList(call, core.Filter{Name: "bench"}, core.Page{})
	if err != nil || len(found.Items) != 1 || found.Items[0].ID != lab.ID {
		t.Errorf("by name: %+v, %v", found, err)
	}
	want("delete", c.ProjectDelete(call, lab.ID), "")
	want("delete again", c.ProjectDelete(call, lab.ID), model.CodeNotFound)
}
