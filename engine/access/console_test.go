package access

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// console is the service on a data directory of its own, with a clock set by hand and
// signed-in people.
type console struct {
	*Service
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
		DataDir: t.TempDir(), Rates: core.DefaultRates(), AuditKeep: 10_000, Version: "test", Log: slog.New(slog.DiscardHandler),
		Clock: func() time.Time {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.time
		},
	}
	c.open()
	t.Cleanup(func() { c.close() })
	if _, err := c.Initialize(false); err != nil {
		t.Fatal(err)
	}
	org, err := c.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	c.org = org.ID
	return c
}

func (c *console) open() {
	c.t.Helper()
	db, err := meta.Open(filepath.Join(c.cfg.DataDir, core.MetadataFile))
	if err != nil {
		c.t.Fatal(err)
	}
	shared, err := core.New(c.cfg, db)
	if err == nil {
		err = shared.Begin()
	}
	if err != nil {
		c.t.Fatal(errors.Join(err, db.Close()))
	}
	c.Service = New(shared)
}

func (c *console) close() {
	c.t.Helper()
	c.core.Stop()
	c.core.Work.Wait()
	c.core.Audits.Close()
	if err := c.core.Meta.Close(); err != nil {
		c.t.Error(err)
	}
}

// restart closes and reopens the data directory.
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

// visitor returns a call by an unknown client.
func (c *console) visitor(action model.Action) *model.Call {
	return &model.Call{Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorKey}, IP: "192.0.2.1"}
}

func (c *console) operator(action model.Action) *model.Call {
	return &model.Call{
		Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator, Name: "root"}, Organization: c.org,
	}
}

// person creates an account with a role and signs in.
func (c *console) person(email string, role model.Role) Person {
	c.t.Helper()
	password := model.NewSecret("correct horse battery")
	if _, err := c.UserCreate(c.operator(model.ActionUserCreate), NewUser{Email: email, Role: role, Password: password}); err != nil {
		c.t.Fatal(err)
	}
	token, err := c.SignIn(c.visitor(model.ActionSessionCreate), email, password, model.Secret{})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.who(token)
}

func (c *console) who(token model.Secret) Person {
	c.t.Helper()
	p, err := c.WhoIs(token)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// by returns a call by a person.
func (c *console) by(p Person, action model.Action) *model.Call {
	return &model.Call{
		Operation: model.OperationFor(action), Actor: actorOf(p.User), Organization: p.User.Organization, Role: p.User.Role, IP: "192.0.2.2",
	}
}

func (c *console) ask(preset model.Preset) DeviceCodes {
	c.t.Helper()
	codes, err := c.DeviceAuthorize(c.visitor(model.ActionDeviceAuthorize), DeviceRequest{ClientName: "tester", Preset: preset})
	if err != nil {
		c.t.Fatal(err)
	}
	return codes
}

func (c *console) poll(code model.Secret) (DeviceToken, error) {
	return c.DeviceToken(c.visitor(model.ActionDeviceToken), code)
}

func (c *console) wantPoll(code model.Secret, want model.Code) {
	c.t.Helper()
	if _, err := c.poll(code); model.CodeOf(err) != want {
		c.t.Errorf("poll: %v, want %q", err, want)
	}
}

func (c *console) approve(p Person, code string, decision DeviceDecision) error {
	_, err := c.DeviceApprove(c.by(p, model.ActionDeviceApprove), p, code, decision)
	return err
}
