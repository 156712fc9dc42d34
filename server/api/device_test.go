package api

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// signIn creates a person's account in w.org and signs in.
func (w *world) signIn(tb testing.TB, role model.Role) access.Person {
	tb.Helper()
	call := &model.Call{
		Operation: model.Operation{Action: model.ActionUserCreate}, Actor: model.Actor{Type: model.ActorOperator}, Organization: w.org.organization,
	}
	in := access.NewUser{Email: string(role) + "@example.com", Role: role, Password: model.NewSecret("correct horse battery")}
	if _, err := w.engine.Access.UserCreate(call, in); err != nil {
		tb.Fatal(err)
	}
	call = &model.Call{Operation: model.Operation{Action: model.ActionSessionCreate}, Actor: model.Actor{Type: model.ActorUser}, IP: "192.0.2.1"}
	token, err := w.engine.Access.SignIn(call, in.Email, in.Password, model.Secret{})
	if err != nil {
		tb.Fatal(err)
	}
	person, err := w.engine.Access.WhoIs(token)
	if err != nil {
		tb.Fatal(err)
	}
	return person
}

// approve approves the device with a user code, with the preset it requested.
func (w *world) approve(tb testing.TB, person access.Person, code string, preset model.Preset) {
	tb.Helper()
	call := &model.Call{
		Operation:    model.OperationFor(model.ActionDeviceApprove),
		Actor:        model.Actor{Type: model.ActorUser, ID: person.User.ID, Name: person.User.Email},
		Organization: person.User.Organization, Role: person.User.Role,
	}
	if _, err := w.engine.Access.DeviceApprove(call, person, code, access.DeviceDecision{Preset: preset}); err != nil {
		tb.Fatal(err)
	}
}

func poll(device string) request {
	return request{method: "POST", path: "/device/token", body: `{"device_code":"` + device + `"}`}
}

// TestDeviceLogin goes through the login of a tool: codes, polls, the key.
func TestDeviceLogin(t *testing.T) {
	w := open(t)
	person := w.signIn(t, model.RoleOwner)
	codes := get[wire.DeviceCodes](t, w.do(t, request{
		method: "POST", path: "/device/authorize", body: `{"client_name":"a tool","scope_preset":"developer"}`,
	}))
	if !regexp.MustCompile(`^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$`).MatchString(codes.UserCode) {
		t.Errorf("user code %q", codes.UserCode)
	}
	if codes.ExpiresIn != 900 || codes.Interval != 5 || codes.VerificationURI != w.server.URL+"/device" ||
		codes.VerificationURIComplete != codes.VerificationURI+"?user_code="+codes.UserCode || len(codes.DeviceCode) < 43 {
		t.Errorf("codes %+v", codes)
	}
	for _, want := range []string{"authorization_pending", "slow_down"} {
		if got := w.do(t, poll(codes.DeviceCode)); got.status != http.StatusBadRequest || got.code != want {
			t.Errorf("poll: %d %s, want %s", got.status, got.code, want)
		}
	}
	w.approve(t, person, codes.UserCode, model.PresetReadOnly)
	token := get[wire.DeviceToken](t, w.do(t, poll(codes.DeviceCode)))
	if token.Organization.ID != w.org.organization || len(token.Projects) != 1 || token.Projects[0].ID != w.org.project ||
		token.Key.Source != model.KeySourceDevice || token.Key.Preset != wire.KeyPresetReadOnly || token.Key.Name != "a tool" {
		t.Errorf("token %+v", token)
	}
	if got := w.do(t, request{method: "GET", path: "/databases", key: token.APIKey}); got.status != http.StatusOK {
		t.Errorf("with the key: %d %s", got.status, got.text)
	}
	if got := w.do(t, poll(codes.DeviceCode)); got.code != "expired_token" {
		t.Errorf("the code again: %d %s", got.status, got.code)
	}
}

// TestDeviceTokenOnce has fifty clients poll concurrently.
func TestDeviceTokenOnce(t *testing.T) {
	w := open(t)
	codes := get[wire.DeviceCodes](t, w.do(t, request{method: "POST", path: "/device/authorize"}))
	w.approve(t, w.signIn(t, model.RoleViewer), codes.UserCode, model.PresetReadOnly)
	replies := make(chan reply, 50)
	var polls sync.WaitGroup
	for range cap(replies) {
		polls.Go(func() { replies <- w.do(t, poll(codes.DeviceCode)) })
	}
	polls.Wait()
	close(replies)
	delivered := 0
	for got := range replies {
		switch {
		case got.status == http.StatusOK:
			delivered++
		case got.status != http.StatusBadRequest || got.code != "expired_token":
			t.Errorf("%d %s", got.status, got.text)
		}
	}
	if delivered != 1 {
		t.Errorf("the key was delivered %d times", delivered)
	}
}

// TestDeviceThrottle: requests from one address are limited, whatever they contain.
func TestDeviceThrottle(t *testing.T) {
	for name, in := range map[string]request{
		"authorize": {path: "/device/authorize"}, "authorize, malformed": {path: "/device/authorize", body: "{"},
		"token": {path: "/device/token", body: `{"device_code":"x"}`}, "token, malformed": {path: "/device/token?x=1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			in.method = "POST"
			for range 1000 {
				got := w.do(t, in)
				if got.status != http.StatusTooManyRequests {
					continue
				}
				if got.code != string(model.CodeRateLimited) || got.header.Get("Retry-After") == "" {
					t.Errorf("%s, Retry-After %q", got.text, got.header.Get("Retry-After"))
				}
				return
			}
			t.Error("a thousand requests from one address")
		})
	}
}

// TestDeviceNames: a client's name is shown to a person.
func TestDeviceNames(t *testing.T) {
	w := open(t)
	for _, name := range []string{`a\u202eb`, `a\nb`, `a\u200bb`, strings.Repeat("x", 129), strings.Repeat("é", 129)} {
		got := w.do(t, request{method: "POST", path: "/device/authorize", body: `{"client_name":"` + name + `"}`})
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(got.msg, "client_name") {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	longest := strings.Repeat("é", 128)
	if got := w.do(t, request{method: "POST", path: "/device/authorize", body: `{"client_name":"` + longest + `"}`}); got.status != http.StatusOK {
		t.Errorf("a name of 128 characters, which are more bytes: %d %s", got.status, got.text)
	}
}
