package access

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestKeysDoNotBecomeAdmins is the attack by a key that may manage people: to sign in as somebody who may let a key
// delete, or do anything else that the key may not.
func TestKeysDoNotBecomeAdmins(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	owner, admin := c.person("ada@example.com", model.RoleOwner), c.person("bob@example.com", model.RoleAdmin)
	viewer := c.person("vic@example.com", model.RoleViewer)
	want := func(what string, err error, code model.Code) {
		t.Helper()
		if model.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	all := c.asKey(model.ActionUserInvite, 0, model.Scopes()...)
	all.Key.AllowDangerous = true
	for _, role := range []model.Role{model.RoleOwner, model.RoleAdmin} {
		_, _, err := c.UserInvite(all, "eve@example.com", role)
		want("invite an "+string(role), err, model.CodeForbidden)
		_, err = c.UserRole(all, viewer.User.ID, role)
		want("make a viewer an "+string(role), err, model.CodeForbidden)
	}
	_, err := c.SetupLinkCreate(all, "")
	want("a link for a new owner", err, model.CodeForbidden)
	for _, person := range []Person{owner, admin} {
		_, err := c.SetupLinkCreate(all, person.User.ID)
		want("a new password", err, model.CodeForbidden)
		_, err = c.UserRole(all, person.User.ID, model.RoleViewer)
		want("make it a viewer", err, model.CodeForbidden)
		_, err = c.UserDelete(all, person.User.ID)
		want("delete", err, model.CodeForbidden)
		_, _, err = c.UserSignOut(all, person.User.ID)
		want("sign out", err, model.CodeForbidden)
		want("end a session", c.SessionEnd(all, person.Session.ID()), model.CodeForbidden)
	}

	partly := c.asKey(model.ActionUserInvite, 0, model.ScopeTeamManage, model.ScopeDatabaseRead)
	_, _, err = c.UserInvite(partly, "eve@example.com", model.RoleViewer)
	want("a viewer who may read more", err, model.CodeInsufficientScope)
	_, err = c.SetupLinkCreate(partly, viewer.User.ID)
	want("the password of a viewer who may read more", err, model.CodeInsufficientScope)
	brief := c.asKey(model.ActionUserInvite, time.Hour, model.Scopes()...)
	_, _, err = c.UserInvite(brief, "eve@example.com", model.RoleViewer)
	want("an account that outlives the key", err, model.CodeForbidden)
	_, err = c.SetupLinkCreate(brief, viewer.User.ID)
	want("a password that outlives the key", err, model.CodeForbidden)

	eve, link, err := c.UserInvite(all, "eve@example.com", model.RoleViewer)
	want("invite a viewer", err, "")
	if _, err := c.UserRole(c.by(owner, model.ActionUserRole), eve.ID, model.RoleAdmin); err != nil {
		t.Fatal(err)
	}
	_, err = c.SetupLinkCheck(link.Token)
	want("a link of somebody who became an admin", err, model.CodeNotFound)
	_, link, err = c.UserInvite(all, "eva@example.com", model.RoleViewer)
	want("invite another", err, "")
	if _, err := c.KeyRevoke(c.operator(model.ActionKeyRevoke), all.Key.ID); err != nil {
		t.Fatal(err)
	}
	_, err = c.SetupLinkCheck(link.Token)
	want("a link of a key that was revoked", err, model.CodeNotFound)
}

// TestSessionsOfPeople: sessions are listed newest first, page by page, and end one by one or all.
func TestSessionsOfPeople(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	ada, vic := c.person("ada@example.com", model.RoleOwner), c.person("vic@example.com", model.RoleViewer)
	call := c.asKey(model.ActionSessionList, 0, model.ScopeSessionManage)
	list := func(user string, page core.Page) core.List[PersonSession] {
		t.Helper()
		found, err := c.SessionList(call, SessionFilter{User: user}, page)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := list("", core.Page{Limit: 1})
	second := list("", core.Page{Limit: 1, Cursor: first.Next})
	if first.Next == "" || second.Next != "" || first.Items[0].ID() == second.Items[0].ID() {
		t.Errorf("%+v, then %+v", first, second)
	}
	if of := list(vic.User.ID, core.Page{}); len(of.Items) != 1 || of.Items[0].Person.Email != "vic@example.com" {
		t.Errorf("of one person: %+v", of)
	}
	elsewhere := *call
	elsewhere.Organization = "org_other"
	if err := c.SessionEnd(&elsewhere, vic.Session.ID()); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("of another organization: %v", err)
	}
	if err := c.SessionEnd(call, vic.Session.ID()); err != nil {
		t.Error(err)
	}
	if of := list(vic.User.ID, core.Page{}); len(of.Items) != 0 {
		t.Errorf("ended: %+v", of)
	}
	if _, ended, err := c.UserSignOut(c.by(ada, model.ActionSessionEndAll), ada.User.ID); ended != 1 || err != nil {
		t.Errorf("%d ended, %v", ended, err)
	}
}
