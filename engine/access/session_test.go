package access

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func fileHolds(t *testing.T, path, text string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(text))
}

func (c *console) signIn(email, password string, old model.Secret) (model.Secret, error) {
	return c.SignIn(c.visitor(model.ActionSessionCreate), email, model.NewSecret(password), old)
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	const password = "correct horse battery"
	for _, tt := range []struct{ email, password string }{
		{"ada@example.com", "wrong"}, {"ada@example.com", ""}, {"nobody@example.com", password}, {"nobody@example.com", ""},
	} {
		_, err := c.signIn(tt.email, tt.password, model.Secret{})
		if model.CodeOf(err) != model.CodeUnauthorized || !strings.Contains(err.Error(), "the password is wrong") {
			t.Errorf("%s with %q: %v", tt.email, tt.password, err)
		}
	}
	first, err := c.signIn(" ADA@example.com ", password, model.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	c.restart()
	c.who(first)
	// The earlier cookie does not work after signing in again.
	second, err := c.signIn("ada@example.com", password, first)
	if err != nil {
		t.Fatal(err)
	}
	c.wantSignedOut(first)
	p := c.who(second)
	if err := c.SignOut(c.by(p, model.ActionSignOut), p); err != nil {
		t.Error(err)
	}
	c.wantSignedOut(second)
	c.wantSignedOut(model.Secret{})
}

func (c *console) wantSignedOut(token model.Secret) {
	c.t.Helper()
	if p, err := c.WhoIs(token); model.CodeOf(err) != model.CodeUnauthorized {
		c.t.Errorf("still signed in: %+v, %v", p, err)
	}
}

func TestSignInIsThrottled(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	c.person("bob@example.com", model.RoleOwner)
	c.wait(time.Hour)
	for range core.VisitorRates()[core.RateSignInAccount].Limit {
		if _, err := c.signIn("ada@example.com", "wrong", model.Secret{}); model.CodeOf(err) != model.CodeUnauthorized {
			t.Fatal(err)
		}
	}
	if _, err := c.signIn("ada@example.com", "correct horse battery", model.Secret{}); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("the right password after too many wrong ones: %v", err)
	}
	if _, err := c.signIn("bob@example.com", "correct horse battery", model.Secret{}); err != nil {
		t.Errorf("another account: %v", err)
	}
	var err error
	for range core.VisitorRates()[core.RateSignInAddress].Limit + 1 {
		_, err = c.signIn("not an address", "", model.Secret{})
	}
	if model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("too many from one address: %v", err)
	}
	c.wait(time.Hour)
	if _, err := c.signIn("ada@example.com", "correct horse battery", model.Secret{}); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	begin := func() model.Secret {
		t.Helper()
		token, err := c.signIn("ada@example.com", "correct horse battery", model.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	idle, used := begin(), begin()
	for c.wait(time.Hour); c.core.Clock().Before(time.Date(2026, 3, 8, 13, 0, 0, 0, time.UTC)); c.wait(24 * time.Hour) {
		c.who(used)
	}
	c.wantSignedOut(idle)
	for range 30 { // it ends although it is used every day
		if _, err := c.WhoIs(used); err != nil {
			break
		}
		c.wait(24 * time.Hour)
	}
	c.wantSignedOut(used)

	one, two := begin(), begin()
	p := c.who(one)
	if err := c.UserPassword(c.by(p, model.ActionUserPassword), p, model.NewSecret("correct horse battery"), model.NewSecret("another long password")); err != nil {
		t.Fatal(err)
	}
	c.who(one)
	c.wantSignedOut(two)
	if _, err := c.signIn("ada@example.com", "correct horse battery", model.Secret{}); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("the old password: %v", err)
	}
	if err := c.SignOutEverywhere(c.by(p, model.ActionSignOutAll), p); err != nil {
		t.Fatal(err)
	}
	c.wantSignedOut(one)
}

// TestLostPassword: a link for a person sets a new password once and ends every session.
func TestLostPassword(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	old, err := c.signIn("ada@example.com", "correct horse battery", model.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	stale, err := c.SetupLinkCreate(c.operator(model.ActionSetupLinkCreate), p.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	link, err := c.SetupLinkCreate(c.operator(model.ActionSetupLinkCreate), p.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.restart()
	complete := func(token model.Secret, password string) (model.Secret, error) {
		return c.SetupComplete(c.visitor(model.ActionUserCreate), token, "ignored@example.com", model.NewSecret(password), model.Secret{})
	}
	if _, err := complete(stale.Token, "a new long password"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("an older link: %v", err)
	}
	if _, err := complete(link.Token, "short"); model.CodeOf(err) != model.CodeValidation {
		t.Errorf("a short password: %v", err)
	}
	token, err := complete(link.Token, "a new long password")
	if err != nil {
		t.Fatal(err)
	}
	if who := c.who(token); who.User.ID != p.User.ID || who.User.Email != "ada@example.com" {
		t.Errorf("signed in as %+v", who.User)
	}
	c.wantSignedOut(old)
	if _, err := complete(link.Token, "yet another password"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the link again: %v", err)
	}
	if _, err := c.signIn("ada@example.com", "a new long password", model.Secret{}); err != nil {
		t.Error(err)
	}
}

// TestLinkForOneself: a session does not suffice to take over the account. Changing the
// password requires the old one, and a link would not.
func TestLinkForOneself(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	for email, role := range map[string]model.Role{"ada@example.com": model.RoleOwner, "bob@example.com": model.RoleAdmin} {
		p := c.person(email, role)
		if _, err := c.SetupLinkCreate(c.by(p, model.ActionSetupLinkCreate), p.User.ID); model.CodeOf(err) != model.CodeForbidden {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// TestLinksEndWithWhatTheyWereMadeFor: a link does no more than its maker may do now, to
// the account as it is now.
func TestLinksEndWithWhatTheyWereMadeFor(t *testing.T) {
	t.Parallel()
	const another = "yet another password"
	operator := func(c *console) *model.Call { return c.operator(model.ActionSetupLinkCreate) }
	admin := func(c *console) *model.Call {
		return c.by(c.person("bob@example.com", model.RoleAdmin), model.ActionSetupLinkCreate)
	}
	role := func(c *console, id string, role model.Role) error {
		_, err := c.UserRole(c.operator(model.ActionUserRole), id, role)
		return err
	}
	for _, tt := range []struct {
		name  string
		maker func(*console) *model.Call
		then  func(c *console, maker *model.Call, target Person) error
		want  model.Code
	}{
		{"an admin's", admin, func(*console, *model.Call, Person) error { return nil }, ""},
		{"the operator's", operator, func(*console, *model.Call, Person) error { return nil }, ""},
		{"the person becomes an owner", admin, func(c *console, _ *model.Call, target Person) error {
			return role(c, target.User.ID, model.RoleOwner)
		}, model.CodeNotFound},
		{"the person becomes an owner, by the operator's", operator, func(c *console, _ *model.Call, target Person) error {
			return role(c, target.User.ID, model.RoleOwner)
		}, model.CodeNotFound},
		{"the person changes the password", admin, func(c *console, _ *model.Call, target Person) error {
			return c.UserPassword(c.by(target, model.ActionUserPassword), target, model.NewSecret("correct horse battery"), model.NewSecret(another))
		}, model.CodeNotFound},
		{"its maker is removed", admin, func(c *console, maker *model.Call, _ Person) error {
			_, err := c.UserDelete(c.operator(model.ActionUserDelete), maker.Actor.ID)
			return err
		}, model.CodeNotFound},
		{"its maker becomes a viewer", admin, func(c *console, maker *model.Call, _ Person) error {
			return role(c, maker.Actor.ID, model.RoleViewer)
		}, model.CodeNotFound},
		{"its maker becomes an owner", admin, func(c *console, maker *model.Call, _ Person) error {
			return role(c, maker.Actor.ID, model.RoleOwner)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := openConsole(t)
			target, maker := c.person("eve@example.com", model.RoleViewer), tt.maker(c)
			link, err := c.SetupLinkCreate(maker, target.User.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := tt.then(c, maker, target); err != nil {
				t.Fatal(err)
			}
			if _, err := c.SetupLinkCheck(link.Token); model.CodeOf(err) != tt.want {
				t.Errorf("the page: %v, want %q", err, tt.want)
			}
			_, err = c.SetupComplete(c.visitor(model.ActionUserCreate), link.Token, "", model.NewSecret("a stranger's password"), model.Secret{})
			if model.CodeOf(err) != tt.want {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestInvitationsEndWithTheirMakers: this includes links for a new owner.
func TestInvitationsEndWithTheirMakers(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	owner := c.person("bob@example.com", model.RoleOwner)
	_, invitation, err := c.UserInvite(c.by(owner, model.ActionUserInvite), "eve@example.com", model.RoleAdmin)
	if err != nil {
		t.Fatal(err)
	}
	link, err := c.SetupLinkCreate(c.by(owner, model.ActionSetupLinkCreate), "")
	if err != nil {
		t.Fatal(err)
	}
	complete := func(token model.Secret, want model.Code) {
		t.Helper()
		_, err := c.SetupComplete(c.visitor(model.ActionUserCreate), token, "mallory@example.com", model.NewSecret("a stranger's password"), model.Secret{})
		if model.CodeOf(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
	demote := func(role model.Role) {
		t.Helper()
		if _, err := c.UserRole(c.operator(model.ActionUserRole), owner.User.ID, role); err != nil {
			t.Fatal(err)
		}
	}
	demote(model.RoleAdmin)
	complete(link.Token, model.CodeNotFound) // an admin cannot make owners
	demote(model.RoleViewer)
	complete(invitation.Token, model.CodeNotFound)
	demote(model.RoleAdmin)
	complete(invitation.Token, "")
}

// TestPasswordReplacedWhileItIsChecked: a check against the previous password neither signs
// in nor sets another.
func TestPasswordReplacedWhileItIsChecked(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	call := c.visitor(model.ActionSessionCreate)
	checked, err := c.userByEmail("ada@example.com")
	if err := cmp.Or(err, c.checkPassword(call, checked, model.NewSecret("correct horse battery"))); err != nil {
		t.Fatal(err)
	}
	change := c.by(p, model.ActionUserPassword)
	if err := c.UserPassword(change, p, model.NewSecret("correct horse battery"), model.NewSecret("another long password")); err != nil {
		t.Fatal(err)
	}
	nothing := func(*meta.Tx) error { return nil }
	if token, err := c.beginSession(call, checked, model.Secret{}, nothing); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("signs in: %v", err)
	} else {
		c.wantSignedOut(token)
	}
	err = c.replacePassword(c.by(p, model.ActionUserPassword), checked, "", c.passwords.hash(model.NewSecret("a stranger's password")))
	if model.CodeOf(err) != model.CodeValidation {
		t.Errorf("sets another: %v", err)
	}
	if _, err := c.signIn("ada@example.com", "another long password", model.Secret{}); err != nil {
		t.Error(err)
	}
}

// TestPeople: roles limit what people do to accounts, and one owner always remains.
func TestPeople(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	owner := c.person("ada@example.com", model.RoleOwner)
	admin := c.person("bob@example.com", model.RoleAdmin)
	want := func(what string, err error, code model.Code) {
		t.Helper()
		if model.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	_, _, err := c.UserInvite(c.by(admin, model.ActionUserInvite), "eve@example.com", model.RoleOwner)
	want("an admin makes an owner", err, model.CodeForbidden)
	_, err = c.UserRole(c.by(admin, model.ActionUserRole), admin.User.ID, model.RoleOwner)
	want("an admin becomes an owner", err, model.CodeForbidden)
	_, err = c.SetupLinkCreate(c.by(admin, model.ActionSetupLinkCreate), owner.User.ID)
	want("an admin gets at an owner's password", err, model.CodeForbidden)
	_, err = c.SetupLinkCreate(c.by(admin, model.ActionSetupLinkCreate), "")
	want("an admin makes a link for a new owner", err, model.CodeForbidden)
	_, err = c.UserDelete(c.by(admin, model.ActionUserDelete), owner.User.ID)
	want("an admin removes an owner", err, model.CodeForbidden)
	_, err = c.UserDelete(c.by(owner, model.ActionUserDelete), owner.User.ID)
	want("the last owner leaves", err, model.CodeForbidden)
	_, err = c.UserRole(c.by(owner, model.ActionUserRole), owner.User.ID, model.RoleViewer)
	want("the last owner steps down", err, model.CodeForbidden)

	user, link, err := c.UserInvite(c.by(admin, model.ActionUserInvite), "Eve@example.com", model.RoleViewer)
	want("an admin invites", err, "")
	_, err = c.signIn("eve@example.com", "", model.Secret{})
	want("who has not set a password", err, model.CodeUnauthorized)
	_, _, err = c.UserInvite(c.by(admin, model.ActionUserInvite), "eve@example.com", model.RoleViewer)
	want("the same again", err, model.CodeConflict)
	token, err := c.SetupComplete(c.visitor(model.ActionUserCreate), link.Token, "", model.NewSecret("long enough for eve"), model.Secret{})
	want("the invitation", err, "")
	if eve := c.who(token); eve.User.Role != model.RoleViewer {
		t.Errorf("invited as a viewer: %+v", eve.User)
	}
	_, err = c.UserRole(c.by(owner, model.ActionUserRole), user.ID, model.RoleOwner)
	want("a second owner", err, "")
	if eve := c.who(token); eve.User.Role != model.RoleOwner {
		t.Error("the role is not in force in the open session")
	}
	_, err = c.UserDelete(c.by(owner, model.ActionUserDelete), owner.User.ID)
	want("an owner leaves", err, "")
	c.wantSignedOut(model.NewSecret("gone"))

	other, err := c.OrganizationCreate(c.operator(model.ActionOrganizationCreate), "globex")
	want("another organization", err, "")
	call := c.operator(model.ActionUserDelete)
	call.Organization = other.ID
	_, err = c.UserDelete(call, user.ID)
	want("a person of another organization", err, model.CodeNotFound)
}

// TestRolesBoundWhatPeopleDo checks every operation against every role.
func TestRolesBoundWhatPeopleDo(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	viewer := c.person("bob@example.com", model.RoleViewer)
	admin := c.person("ada@example.com", model.RoleAdmin)
	for _, op := range append(model.Operations(), model.ConsoleOperations()...) {
		if op.Scope == "" && op.Role == "" {
			continue // API operations without a key
		}
		if err := c.Authorize(c.by(admin, op.Action)); err != nil {
			t.Errorf("an admin: %s: %v", op.Action, err)
		}
		reads := model.RoleViewer.Holds(op.Scope) || op.Role == model.RoleViewer
		err := c.Authorize(c.by(viewer, op.Action))
		if (err == nil) != reads || err != nil && model.CodeOf(err) != model.CodeForbidden {
			t.Errorf("a viewer: %s: %v", op.Action, err)
		}
		if nobody := c.Authorize(c.by(Person{}, op.Action)); nobody == nil {
			t.Errorf("nobody may %s", op.Action)
		}
	}
}

func TestPasswordHash(t *testing.T) {
	t.Parallel()
	p := newHasher()
	hash := p.hash(model.NewSecret("right"))
	for password, want := range map[string]bool{"right": true, "wrong": false, "": false} {
		if ok, err := p.verify(false, model.NewSecret(password), hash); ok != want || err != nil {
			t.Errorf("%q: %v, %v", password, ok, err)
		}
	}
	if ok, err := p.verify(false, model.NewSecret(""), ""); ok || err != nil {
		t.Errorf("no password: %v, %v", ok, err)
	}
	for _, damaged := range []string{"x", strings.Replace(hash, "argon2id", "argon2i", 1), hash[:40], strings.Replace(hash, "m=", "m=x", 1)} {
		if ok, err := p.verify(false, model.NewSecret("right"), damaged); ok || !errors.Is(err, errPasswordHash) {
			t.Errorf("%s: %v, %v", damaged, ok, err)
		}
	}
}

// TestEndedWhileAsking: a request changes nothing about who may do what once its sender was signed out, demoted or removed,
// whenever it began.
func TestEndedWhileAsking(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(c *console, p Person) error
		want model.Code
	}{
		"signed out": {func(c *console, p Person) error {
			_, _, err := c.UserSignOut(c.operator(model.ActionSessionEndAll), p.User.ID)
			return err
		}, model.CodeUnauthorized},
		"removed": {func(c *console, p Person) error {
			_, err := c.UserDelete(c.operator(model.ActionUserDelete), p.User.ID)
			return err
		}, model.CodeUnauthorized},
		"demoted": {func(c *console, p Person) error {
			_, err := c.UserRole(c.operator(model.ActionUserRole), p.User.ID, model.RoleViewer)
			return err
		}, model.CodeForbidden},
		"no owner any more": {func(c *console, p Person) error {
			_, err := c.UserRole(c.operator(model.ActionUserRole), p.User.ID, model.RoleAdmin)
			return err
		}, model.CodeForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			c := openConsole(t)
			c.person("ada@example.com", model.RoleOwner)
			boss, pal := c.person("boss@example.com", model.RoleOwner), c.person("pal@example.com", model.RoleViewer)
			_, key, err := c.KeyCreate(c.operator(model.ActionKeyCreate), NewKey{Name: "k", Preset: model.PresetFullAccess})
			if err != nil {
				t.Fatal(err)
			}
			codes := c.ask(model.PresetFullAccess)
			begun := func(action model.Action) *model.Call {
				call := c.by(boss, action)
				call.Session = boss.Session.TokenHash
				return call
			}
			asked := map[string]func() error{ // with the call as it was when the request began
				"make an owner": func() error {
					_, err := c.UserRole(begun(model.ActionUserRole), pal.User.ID, model.RoleOwner)
					return err
				},
				"invite": func() error {
					_, _, err := c.UserInvite(begun(model.ActionUserInvite), "new@example.com", model.RoleOwner)
					return err
				},
				"link for an owner": func() error {
					_, err := c.SetupLinkCreate(begun(model.ActionSetupLinkCreate), "")
					return err
				},
			}
			if test.want != model.CodeForbidden || name == "demoted" { // an admin may
				asked["key"] = func() error {
					_, _, err := c.KeyCreate(begun(model.ActionKeyCreate), NewKey{Name: "eve", Preset: model.PresetFullAccess, AllowDangerous: true})
					return err
				}
				asked["toggle"] = func() error {
					_, err := c.KeyAllowDangerous(begun(model.ActionKeyUpdate), key.ID, true)
					return err
				}
				asked["device"] = func() error {
					_, err := c.DeviceApprove(begun(model.ActionDeviceApprove), boss, codes.User, DeviceDecision{Preset: model.PresetFullAccess})
					return err
				}
				asked["sign out"] = func() error {
					_, _, err := c.UserSignOut(begun(model.ActionSessionEndAll), pal.User.ID)
					return err
				}
				asked["delete"] = func() error {
					_, err := c.UserDelete(begun(model.ActionUserDelete), pal.User.ID)
					return err
				}
			}
			if err := test.end(c, boss); err != nil {
				t.Fatal(err)
			}
			for what, ask := range asked {
				if err := ask(); model.CodeOf(err) != test.want {
					t.Errorf("%s: %v, want %s", what, err, test.want)
				}
			}
		})
	}
}
