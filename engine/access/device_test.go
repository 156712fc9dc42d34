package access

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestDeviceLoginSurvivesRestarts goes through all steps with a restart between any two.
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
	c.wantPoll(codes.Device, model.CodeSlowDown) // sooner than 4 s; the interval becomes 10 s
	c.restart()
	c.wait(8 * time.Second)
	c.wantPoll(codes.Device, model.CodeSlowDown) // and now 15 s
	c.restart()
	c.wait(15 * time.Second)
	c.wantPoll(codes.Device, model.CodeAuthorizationPending)
	c.restart()
	if err := c.approve(p, codes.User, DeviceDecision{Preset: model.PresetDeveloper, ExpiresIn: time.Hour}); err != nil {
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
	if err := c.Authenticate(call, token.APIKey.Reveal()); err != nil || call.Actor.ID != token.Key.ID {
		t.Errorf("the key: %v, %v", call.Actor, err)
	}
	c.wantPoll(codes.Device, model.CodeExpiredToken)
	c.wait(time.Hour)
	if err := c.Authenticate(&model.Call{}, token.APIKey.Reveal()); model.CodeOf(err) != model.CodeUnauthorized {
		t.Errorf("the key after its hour: %v", err)
	}
}

// TestDeviceKeyBesideDamage: a device gets its key, which it can ask for only once, although the projects cannot be read.
func TestDeviceKeyBesideDamage(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(p, codes.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	projects, err := c.Projects(c.operator(model.ActionProjectList))
	if err != nil {
		t.Fatal(err)
	}
	c.close()
	file, err := bbolt.Open(filepath.Join(c.cfg.DataDir, core.MetadataFile), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("projects")).Put([]byte(projects[0].ID), []byte("rubbish"))
	}), file.Close()); err != nil {
		t.Fatal(err)
	}
	c.open()
	token, err := c.poll(codes.Device)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Authenticate(&model.Call{}, token.APIKey.Reveal()); err != nil {
		t.Errorf("the key: %v", err)
	}
}

// TestDeviceKeyIsDeliveredOnce polls fifty times at once.
func TestDeviceKeyIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(p, codes.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
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
	keys, err := c.KeyList(c.operator(model.ActionKeyList), KeyFilter{}, core.Page{})
	if err != nil || delivered != 1 || len(keys.Items) != 1 {
		t.Errorf("delivered %d times, %d keys, %v", delivered, len(keys.Items), err)
	}
}

func TestDeviceEnds(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	denied := c.ask(model.PresetReadOnly)
	if _, err := c.DeviceDeny(c.by(p, model.ActionDeviceDeny), p, denied.User); err != nil {
		t.Fatal(err)
	}
	c.wantPoll(denied.Device, model.CodeAccessDenied)
	if err := c.approve(p, denied.User, DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("approved after it was denied: %v", err)
	}
	c.wantPoll(model.NewSecret("unknown"), model.CodeExpiredToken)

	late, approved := c.ask(model.PresetReadOnly), c.ask(model.PresetReadOnly)
	if err := c.approve(p, approved.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	c.wait(model.DeviceLife)
	c.wantPoll(late.Device, model.CodeExpiredToken)
	c.wantPoll(approved.Device, model.CodeExpiredToken)
	if err := c.approve(p, late.User, DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("approved after its time: %v", err)
	}
	if err := c.SweepCodes(); err != nil {
		t.Fatal(err)
	}
	c.wantDevices(0)
}

func (c *console) wantDevices(want int) {
	c.t.Helper()
	got := 0
	if err := c.core.Meta.View(func(tx *meta.Tx) error {
		got = tx.Devices().Count()
		return nil
	}); err != nil || got != want {
		c.t.Errorf("%d device authorizations are kept, want %d, %v", got, want, err)
	}
}

// TestDeviceGrants tries what a person may grant to a device.
func TestDeviceGrants(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	owner := c.person("ada@example.com", model.RoleOwner)
	viewer := c.person("bob@example.com", model.RoleViewer)
	for _, tt := range []struct {
		name     string
		by       Person
		asked    model.Preset
		decision DeviceDecision
		want     model.Code
	}{
		{"as asked", owner, model.PresetDeveloper, DeviceDecision{Preset: model.PresetDeveloper}, ""},
		{"less", owner, model.PresetFullAccess, DeviceDecision{Preset: model.PresetReadOnly}, ""},
		{"more", owner, model.PresetReadOnly, DeviceDecision{Preset: model.PresetDeveloper}, model.CodeValidation},
		{"nothing", owner, model.PresetReadOnly, DeviceDecision{}, model.CodeValidation},
		{"custom", owner, model.PresetFullAccess, DeviceDecision{Preset: model.PresetCustom}, model.CodeValidation},
		{"dangerous", owner, model.PresetFullAccess, DeviceDecision{Preset: model.PresetFullAccess, AllowDangerous: true}, ""},
		{"dangerous and small", owner, model.PresetFullAccess, DeviceDecision{Preset: model.PresetDeveloper, AllowDangerous: true}, model.CodeValidation},
		{"a viewer, read only", viewer, model.PresetDeveloper, DeviceDecision{Preset: model.PresetReadOnly}, ""},
		{"a viewer, more", viewer, model.PresetDeveloper, DeviceDecision{Preset: model.PresetDeveloper}, model.CodeForbidden},
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

// TestDeviceGrantOfAFencedAppliance: a read-only appliance delivers no key, whenever the login was approved.
func TestDeviceGrantOfAFencedAppliance(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	owner := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetDeveloper)
	if err := c.approve(owner, codes.User, DeviceDecision{Preset: model.PresetDeveloper}); err != nil {
		t.Fatal(err)
	}
	c.core.SetReadOnly("another machine has taken over")
	c.wantPoll(codes.Device, model.CodeReadOnly)
}

// TestDeviceGrantOfSomebodyGone: a removed person's grant is void.
func TestDeviceGrantOfSomebodyGone(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	c.person("ada@example.com", model.RoleOwner)
	gone, demoted := c.person("bob@example.com", model.RoleAdmin), c.person("eve@example.com", model.RoleAdmin)
	first, second := c.ask(model.PresetDeveloper), c.ask(model.PresetDeveloper)
	if err := errors.Join(
		c.approve(gone, first.User, DeviceDecision{Preset: model.PresetDeveloper}),
		c.approve(demoted, second.User, DeviceDecision{Preset: model.PresetDeveloper}),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UserDelete(c.operator(model.ActionUserDelete), gone.User.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.UserRole(c.operator(model.ActionUserRole), demoted.User.ID, model.RoleViewer); err != nil {
		t.Fatal(err)
	}
	c.wantPoll(first.Device, model.CodeAccessDenied)
	c.wantPoll(second.Device, model.CodeAccessDenied)
}

// TestWrongCodesLock: five wrong codes in a row lock the page for a minute, in this session
// and after a restart.
func TestWrongCodesLock(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p, other := c.person("ada@example.com", model.RoleOwner), c.person("bob@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	review := func(p Person, code string) error {
		_, err := c.DeviceReview(c.by(p, model.ActionDeviceReview), p, code)
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
	if err := review(p, codes.User); err != nil { // a correct code: they are not in a row
		t.Error(err)
	}
	try(4, model.CodeNotFound)
	c.restart()
	try(1, model.CodeRateLimited)
	c.restart()
	if err := review(p, codes.User); model.CodeOf(err) != model.CodeRateLimited {
		t.Errorf("the right code while locked: %v", err)
	}
	if err := c.approve(p, codes.User, DeviceDecision{Preset: model.PresetReadOnly}); model.CodeOf(err) != model.CodeRateLimited {
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

// TestDeviceCodesAreHashed searches the files for the codes.
func TestDeviceCodesAreHashed(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	p := c.person("ada@example.com", model.RoleOwner)
	codes := c.ask(model.PresetReadOnly)
	if err := c.approve(p, codes.User, DeviceDecision{Preset: model.PresetReadOnly}); err != nil {
		t.Fatal(err)
	}
	token, err := c.poll(codes.Device)
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.SignIn(c.visitor(model.ActionSessionCreate), "ada@example.com", model.NewSecret("correct horse battery"), model.Secret{})
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
