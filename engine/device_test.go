package engine

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// console is an engine without PostgreSQL, a clock that is set by hand, and
// people who are signed in.
type console struct {
	*Engine
	t    *testing.T
	cfg  core.Config
	org  string
	mu   sync.Mutex
	time time.Time
}

func openConsole(t *testing.T) *console {
	t.Helper()
	c := &console{t: t, time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	c.cfg = core.Config{
		DataDir: t.TempDir(), Rates: core.DefaultRates(), AuditKeep: 10_000, MaxObjectBytes: 1 << 20, Version: "test",
		Clock: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.time
		},
	}
	c.open()
	t.Cleanup(func() { c.close() })
	if _, err := c.Access.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := c.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	c.org = org.ID
	return c
}

func (c *console) open() {
	c.t.Helper()
	e, err := Open(c.cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Engine = e
}

func (c *console) close() {
	c.t.Helper()
	if err := c.Close(context.Background()); err != nil {
		c.t.Error(err)
	}
}

// restart closes the engine and opens the data directory again.
func (c *console) restart() {
	c.t.Helper()
	c.close()
	c.open()
}

func (c *console) wait(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

// visitor is a call of somebody who is not known yet.
func (c *console) visitor(action model.Action) *model.Call {
	return &model.Call{Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorKey}, IP: "192.0.2.1"}
}

func (c *console) operator(action model.Action) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator, Name: "root"}, Organization: c.org,
	}
}

// person makes the account of a person with a role, and signs in.
func (c *console) person(email string, role model.Role) access.Person {
	c.t.Helper()
	password := model.NewSecret("correct horse battery")
	if _, err := c.Access.UserCreate(c.operator(model.ActionUserCreate), access.NewUser{Email: email, Role: role, Password: password}); err != nil {
		c.t.Fatal(err)
	}
	token, err := c.Access.SignIn(c.visitor(model.ActionSessionCreate), email, password, model.Secret{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.who(token)
}

func (c *console) who(token model.Secret) access.Person {
	c.t.Helper()
	p, err := c.Access.WhoIs(token)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// by is a call of a person.
func (c *console) by(p access.Person, action model.Action) *model.Call {
	return &model.Call{
		Operation: model.OperationFor(action), Actor: access.ActorOf(p.User), Organization: p.User.Organization, Role: p.User.Role, IP: "192.0.2.2",
	}
}

func (c *console) ask(preset model.Preset) access.DeviceCodes {
	c.t.Helper()
	codes, err := c.Access.DeviceAuthorize(c.visitor(model.ActionDeviceAuthorize), access.DeviceRequest{ClientName: "tester", Preset: preset})
	if err != nil {
		c.t.Fatal(err)
	}
	return codes
}

func (c *console) poll(code model.Secret) (access.DeviceToken, error) {
	return c.Access.DeviceToken(c.visitor(model.ActionDeviceToken), code)
}

func (c *console) wantPoll(code model.Secret, want model.Code) {
	c.t.Helper()
	if _, err := c.poll(code); model.CodeOf(err) != want {
		c.t.Errorf("poll: %v, want %q", err, want)
	}
}

func (c *console) approve(p access.Person, code string, decision access.DeviceDecision) error {
	_, err := c.Access.DeviceApprove(c.by(p, model.ActionDeviceApprove), p, code, decision)
	return err
}

// TestDeviceLoginSurvivesRestarts goes the whole way with a restart between
// any two steps.
func TestDeviceLoginSurvivesRestarts(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetFullAccess)
	if codes.ExpiresIn != 900*time.Second || codes.Interval != 5*time.Second {
		t.Errorf("expires in %v, interval %v", codes.ExpiresIn, codes.Interval)
	}
	c.restart()
	c.wantPoll(codes.Device, model.CodeAuthorizationPending)
	c.restart()
	c.wait(3 * time.Second)
	c.wantPoll(codes.Device, model.CodeSlowDown) // sooner than 4 s; the interval is 10 s from here on
	c.restart()
	c.wait(8 * time.Second)
	c.wantPoll(codes.Device, model.CodeSlowDown) // and now 15 s
	c.restart()
	c.wait(15 * time.Second)
	c.wantPoll(codes.Device, model.CodeAuthorizationPending)
	c.restart()
	if err := c.approve(p, codes.User, access.DeviceDecision{Preset: model.PresetDeveloper, ExpiresIn: time.Hour}); err != nil {
		t.Fatal(err)
	}
	c.restart()
	token, err := c.poll(codes.Device)
	if err != nil {
		t.Fatal(err)
	}
	if token.Key.Preset != model.PresetDeveloper || token.Key.AllowDangerous || token.Key.Source != model.KeySourceDevice ||
		token.Key.ExpiresAt == nil || token.Organization.ID != c.org || len(token.Projects) != 1 {
		t.Errorf("token %+v", token)
	}
	c.restart()
	call := &model.Call{}
	if err := c.Access.Authenticate(call, token.APIKey.Reveal()); err != nil || call.Actor.ID != token.Key.ID {
		t.Errorf("the key: %v, %v", call.Actor, err)
	}
	c.wantPoll(codes.Device, model.CodeExpiredToken)
	c.wait(time.Hour)
	if err := c.Access.Authenticate(&model.Call{}, token.APIKey.Reveal()); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("the key after its hour: %v", err)
	}
}

// TestDeviceKeyIsDeliveredOnce has fifty poll at once.
func TestDeviceKeyIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(p, codes.User, access.DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	var polls sync.WaitGroup
	answers := make(chan error, 50)
	for range cap(answers) {
		polls.Go(func() {
			_, err := c.poll(codes.Device)
			answers <- err
		})
	}
	polls.Wait()
	close(answers)
	delivered := 0
	for err := range answers {
		if err == nil {
			delivered++
		} else if model.CodeOf(err) != model.CodeExpiredToken {
			t.Errorf("a poll that came too late: %v", err)
		}
	}
	keys, err := c.Access.KeyList(c.operator(model.ActionKeyList), core.Page{})
	if err != nil || delivered != 1 || len(keys.Items) != 1 {
		t.Errorf("delivered %d times, %d keys, %v", delivered, len(keys.Items), err)
	}
}

func TestDeviceEnds(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	denied := c.ask(model.PresetReadOnly)
	if _, err := c.Access.DeviceDeny(c.by(p, model.ActionDeviceDeny), p, denied.User); err != nil {
		t.Fatal(err)
	}
	c.wantPoll(denied.Device, model.CodeAccessDenied)
	if err := c.approve(p, denied.User, access.DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("approved after it was denied: %v", err)
	}
	c.wantPoll(model.NewSecret("unknown"), model.CodeExpiredToken)

	late, approved := c.ask(model.PresetReadOnly), c.ask(model.PresetReadOnly)
	if err := c.approve(p, approved.User, access.DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	c.wait(model.DeviceLife)
	c.wantPoll(late.Device, model.CodeExpiredToken)
	c.wantPoll(approved.Device, model.CodeExpiredToken)
	if err := c.approve(p, late.User, access.DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("approved after its time: %v", err)
	}
	if err := c.Access.SweepCodes(); err != nil {
		t.Fatal(err)
	}
	c.wantDevices(0)
}

func (c *console) wantDevices(want int) {
	c.t.Helper()
	got := 0
	if err := c.Core.Meta.View(func(tx *meta.Tx) error {
		got = tx.Devices().Count()
		return nil
	}); err != nil || got != want {
		c.t.Errorf("%d device authorizations are kept, want %d, %v", got, want, err)
	}
}

// TestDeviceGrants tries what a person may let a device have.
func TestDeviceGrants(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	owner := c.person("ada@example.com", model.RoleOwner)
	viewer := c.person("bob@example.com", model.RoleViewer)
	for _, tt := range []struct {
		name     string
		by       access.Person
		asked    model.Preset
		decision access.DeviceDecision
		want     model.Code
	}{
		{"as asked", owner, model.PresetDeveloper, access.DeviceDecision{Preset: model.PresetDeveloper}, ""},
		{"less", owner, model.PresetFullAccess, access.DeviceDecision{Preset: model.PresetReadOnly}, ""},
		{"more", owner, model.PresetReadOnly, access.DeviceDecision{Preset: model.PresetDeveloper}, model.CodeValidation},
		{"nothing", owner, model.PresetReadOnly, access.DeviceDecision{}, model.CodeValidation},
		{"custom", owner, model.PresetFullAccess, access.DeviceDecision{Preset: model.PresetCustom}, model.CodeValidation},
		{"dangerous", owner, model.PresetFullAccess, access.DeviceDecision{Preset: model.PresetFullAccess, AllowDangerous: true}, ""},
		{"dangerous and small", owner, model.PresetFullAccess, access.DeviceDecision{Preset: model.PresetDeveloper, AllowDangerous: true}, model.CodeValidation},
		{"a viewer, read only", viewer, model.PresetDeveloper, access.DeviceDecision{Preset: model.PresetReadOnly}, ""},
		{"a viewer, more", viewer, model.PresetDeveloper, access.DeviceDecision{Preset: model.PresetDeveloper}, model.CodeForbidden},
	} {
		codes := c.ask(tt.asked)
		if err := c.approve(tt.by, codes.User, tt.decision); model.CodeOf(err) != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		token, err := c.poll(codes.Device)
		if (err == nil) != (tt.want == "") {
			t.Errorf("%s: the poll after it: %v", tt.name, err)
		}
		if err == nil && (token.Key.Preset != tt.decision.Preset || token.Key.AllowDangerous != tt.decision.AllowDangerous) {
			t.Errorf("%s: got %+v", tt.name, token.Key)
		}
	}
}

// TestDeviceGrantOfSomebodyGone: who is removed lets nobody in any more.
func TestDeviceGrantOfSomebodyGone(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	gone, demoted := c.person("bob@example.com", model.RoleAdmin), c.person("eve@example.com", model.RoleAdmin)
	first, second := c.ask(model.PresetDeveloper), c.ask(model.PresetDeveloper)
	if err := errors.Join(
		c.approve(gone, first.User, access.DeviceDecision{Preset: model.PresetDeveloper}),
		c.approve(demoted, second.User, access.DeviceDecision{Preset: model.PresetDeveloper}),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Access.UserDelete(c.operator(model.ActionUserDelete), gone.User.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Access.UserRole(c.operator(model.ActionUserRole), demoted.User.ID, model.RoleViewer); err != nil {
		t.Fatal(err)
	}
	c.wantPoll(first.Device, model.CodeAccessDenied)
	c.wantPoll(second.Device, model.CodeAccessDenied)
}

// TestWrongCodesLock: five in a row lock the page for a minute, in this
// session and after a restart.
func TestWrongCodesLock(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p, other := c.person("ada@example.com", model.RoleOwner), c.person("bob@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	review := func(p access.Person, code string) error {
		_, err := c.Access.DeviceReview(c.by(p, model.ActionDeviceReview), p, code)
		return err
	}
	try := func(n int, want model.Code) {
		t.Helper()
		for range n {
			if err := review(p, "BBBB-BBBB"); model.CodeOf(err) != want {
				t.Errorf("a wrong code: %v, want %q", err, want)
			}
		}
	}
	try(4, model.CodeNotFound)
	if err := review(p, codes.User); err != nil { // a right one: they are not in a row
		t.Error(err)
	}
	try(4, model.CodeNotFound)
	c.restart()
	try(1, model.CodeRateLimited)
	c.restart()
	if err := review(p, codes.User); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("the right code while locked: %v", err)
	}
	if err := c.approve(p, codes.User, access.DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("an approval while locked: %v", err)
	}
	if err := review(other, codes.User); err != nil {
		t.Errorf("another session: %v", err)
	}
	c.wait(model.CodeLockTime)
	if err := review(p, codes.User); err != nil {
		t.Errorf("after a minute: %v", err)
	}
}

// TestDeviceCodesAreHashed looks for the codes in the files.
func TestDeviceCodesAreHashed(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(p, codes.User, access.DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	token, err := c.poll(codes.Device)
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Access.SignIn(c.visitor(model.ActionSessionCreate), "ada@example.com", model.NewSecret("correct horse battery"), model.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	c.restart() // the audit log is written
	for what, text := range map[string]string{
		"device code": codes.Device.Reveal(), "user code": codes.User, "key": token.APIKey.Reveal(),
		"session": session.Reveal(), "password": "correct horse battery",
	} {
		if fileHolds(t, filepath.Join(c.cfg.DataDir, core.MetadataFile), text) {
			t.Errorf("the %s lies in the metadata", what)
		}
	}
}
