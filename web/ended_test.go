package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// TestEndedWhileSending: a form whose sender is signed out, or gets a lesser role, while it is on its way is not carried out.
func TestEndedWhileSending(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	org, err := c.engine.Access.Organization(model.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	operator := func(action model.Action) *model.Call {
		return &model.Call{Operation: model.Operation{Action: action}, Actor: model.Actor{Type: model.ActorOperator}, Organization: org.ID}
	}
	for i, test := range []struct {
		path string
		form url.Values
		end  func(id string) error
		want int
	}{
		{"/keys", url.Values{"name": {"eve"}, "preset": {"full_access"}, "allow_dangerous": {"on"}}, func(id string) error {
			_, _, err := c.engine.Access.UserSignOut(operator(model.ActionSessionEndAll), id)
			return err
		}, http.StatusUnauthorized},
		{"/buckets", url.Values{"name": {"eve"}}, func(id string) error {
			_, err := c.engine.Access.UserRole(operator(model.ActionUserRole), id, model.RoleViewer)
			return err
		}, http.StatusForbidden},
	} {
		email, password := fmt.Sprintf("eve%d@example.com", i), model.NewSecret("correct horse battery")
		user, err := c.engine.Access.UserCreate(operator(model.ActionUserCreate), access.NewUser{Email: email, Role: model.RoleAdmin, Password: password})
		if err != nil {
			t.Fatal(err)
		}
		token, err := c.engine.Access.SignIn(&model.Call{Operation: model.Operation{Action: model.ActionSessionCreate}, IP: "192.0.2.1"}, email, password, model.Secret{})
		if err != nil {
			t.Fatal(err)
		}
		base, err := url.Parse(c.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", base.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		body := test.form.Encode()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nCookie: %s=%s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			test.path, base.Host, c.server.URL, c.sessionCookie(t), token.Reveal(), len(body))
		reader := bufio.NewReader(conn)
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != http.StatusContinue { // the session was found
			t.Fatal(test.path, res, err)
		}
		if err := test.end(user.ID); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, body)
		if res, err := http.ReadResponse(reader, nil); err != nil || res.StatusCode != test.want {
			t.Errorf("%s: %v, %v; want %d", test.path, res, err, test.want)
		}
	}
	keys, err := c.engine.Access.KeyList(operator(model.ActionKeyList), access.KeyFilter{Filter: core.Filter{Name: "eve"}}, core.Page{})
	if err != nil || len(keys.Items) != 0 {
		t.Errorf("%+v, %v", keys.Items, err)
	}
}

// sessionCookie returns the name of the cookie with the session.
func (c *console) sessionCookie(t *testing.T) string {
	t.Helper()
	base, err := url.Parse(c.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range c.client.Jar.Cookies(base) {
		if _, err := c.engine.Access.WhoIs(model.NewSecret(cookie.Value)); err == nil {
			return cookie.Name
		}
	}
	t.Fatal("there is no session")
	return ""
}
