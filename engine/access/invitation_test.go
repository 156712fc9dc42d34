package access

import (
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestEndedInvitationHoldsNoAddress: an organization keeps an e-mail address from others by an invitation only as long as its
// link is valid, or once the person has accepted it.
func TestEndedInvitationHoldsNoAddress(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	other, err := c.OrganizationCreate(c.operator(model.ActionOrganizationCreate), "other")
	if err != nil {
		t.Fatal(err)
	}
	in := func(organization string, action model.Action) *model.Call {
		call := c.operator(action)
		call.Organization = organization
		return call
	}
	invite := func(organization, email string, want model.Code) (model.User, SetupLink) {
		t.Helper()
		user, link, err := c.UserInvite(in(organization, model.ActionUserInvite), email, model.RoleViewer)
		if model.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", email, err, want)
		}
		return user, link
	}
	const lost, kept, again, owner = "lost@example.com", "kept@example.com", "again@example.com", "owner@example.com"
	first, _ := invite(other.ID, lost, "")
	_, link := invite(other.ID, kept, "")
	renewed, _ := invite(other.ID, again, "")
	invite(other.ID, owner, "")
	if _, err := c.SetupComplete(c.visitor(model.ActionUserCreate), link.Token, "", model.NewSecret("correct horse battery"), model.Secret{}); err != nil {
		t.Fatal(err)
	}
	invite(c.org, lost, model.CodeConflict)
	c.wait(PersonLinkLife - time.Minute)
	invite(c.org, lost, model.CodeConflict)
	if _, err := c.SetupLinkCreate(in(other.ID, model.ActionSetupLinkCreate), renewed.ID); err != nil {
		t.Fatal(err)
	}
	c.wait(time.Minute)
	for _, swept := range []bool{false, true} {
		if swept {
			if err := c.SweepCodes(); err != nil {
				t.Fatal(err)
			}
		}
		invite(c.org, kept, model.CodeConflict)
		invite(c.org, again, model.CodeConflict)
		invite(other.ID, lost, model.CodeConflict) // a new link for the account is the remedy there
	}
	taken, _ := invite(c.org, lost, "")
	if _, err := c.UserGet(in(other.ID, model.ActionUserGet), first.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the account of the invitation that ended: %v", err)
	}
	if user, err := c.UserGet(in(c.org, model.ActionUserGet), taken.ID); err != nil || user.Email != lost {
		t.Errorf("the account of the other invitation: %+v, %v", user, err)
	}
	entries, _, err := c.core.AuditList(in(other.ID, model.ActionAuditList), core.AuditFilter{}, 1, 1)
	if err != nil || len(entries) != 1 || entries[0].Action != model.ActionUserDelete || entries[0].Resource.ID != first.ID {
		t.Errorf("the log of the organization that had invited: %+v, %v", entries, err)
	}

	setup, err := c.SetupLinkCreate(c.operator(model.ActionSetupLinkCreate), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetupComplete(c.visitor(model.ActionUserCreate), setup.Token, owner, model.NewSecret("correct horse battery"), model.Secret{}); err != nil {
		t.Errorf("a new owner whose invitation elsewhere has ended: %v", err)
	}
}
