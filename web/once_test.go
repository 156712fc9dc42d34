package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/webhooks"
)

// TestFormsAreCarriedOutOnce sends the forms whose responses show a secret once more, as a browser does that loads such a
// response again. Nothing is made a second time, until the form itself is loaded or filled in again.
func TestFormsAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	hook, _, err := c.engine.Webhooks.Create(c.operatorCall(t), webhooks.NewWebhook{Name: "hook", URL: "https://example.com/hook", Events: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	secret := func() string {
		w, err := c.engine.Webhooks.Get(c.operatorCall(t), hook.ID)
		if err != nil {
			t.Fatal(err)
		}
		return string(w.Secret)
	}
	for _, form := range []struct {
		page, action, field, typed, other string
		state                             func() string // of what the form changes
	}{
		{"/keys/new", "/keys", "name", "ci", "ci 2", func() string { return c.names(t, "key") }},
		{"/webhooks", "/webhooks", "name", "builds", "builds 2", func() string { return c.names(t, "webhook") }},
		{"/people", "/people", "email", "ben@example.com", "cleo@example.com", func() string { return c.names(t, "user") }},
		{"/webhooks/" + hook.ID, "/webhooks/" + hook.ID + "/secret", "", "", "", secret},
		{"/people", "/people/user_z119/link", "", "", "", nil},
		{"/buckets/bucket_1", "/buckets/bucket_1/upload-links", "name", "a.txt", "b.txt", nil},
	} {
		state := form.state
		if state == nil {
			state = func() string { return "" }
		}
		send := func(fields url.Values, want int) {
			t.Helper()
			if got := c.post(t, form.action, fields); got.status != want {
				t.Errorf("%s: %d, want %d", form.action, got.status, want)
			} else if want == http.StatusConflict && !strings.Contains(got.page, "This form was sent already") {
				t.Errorf("%s: the page does not say that it was sent before", form.action)
			}
		}
		filled := func(typed string) url.Values {
			fields := formOn(t, c.get(t, form.page), form.action)
			if form.field != "" {
				fields.Set(form.field, typed)
			}
			if form.action == "/webhooks" {
				fields.Set("url", "https://example.com/hook")
			}
			return fields
		}
		fields := filled("")
		if form.field != "" {
			send(fields, http.StatusUnprocessableEntity)
			fields.Set(form.field, form.typed)
		}
		send(fields, http.StatusOK)
		made := state()
		send(fields, http.StatusConflict)
		if now := state(); now != made {
			t.Errorf("%s: there is now %q, and %q before", form.action, now, made)
		}
		if form.field != "" {
			fields.Set(form.field, form.other)
			send(fields, http.StatusOK)
		}
		if form.action != "/people" { // an account cannot be made twice
			send(filled(form.typed), http.StatusOK)
		}
	}
	if c.log.Len() > 0 {
		t.Errorf("logged: %s", c.log)
	}
}

// names returns the names of all keys, webhooks or accounts.
func (c *console) names(t *testing.T, what string) string {
	t.Helper()
	var names []string
	var err error
	page := core.Page{Limit: core.MaxLimit}
	switch call := c.operatorCall(t); what {
	case "key":
		var list core.List[model.Key]
		list, err = c.engine.Access.KeyList(call, access.KeyFilter{}, page)
		for _, k := range list.Items {
			names = append(names, k.Name)
		}
	case "webhook":
		var list core.List[model.Webhook]
		list, err = c.engine.Webhooks.List(call, core.Filter{}, page)
		for _, w := range list.Items {
			names = append(names, w.Name)
		}
	default:
		var list core.List[model.User]
		list, err = c.engine.Access.UserList(call, access.UserFilter{}, page)
		for _, u := range list.Items {
			names = append(names, u.Email)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// TestFormsOfServersAreCarriedOutOnce: the forms whose secrets a server takes have the mark, too.
func TestFormsOfServersAreCarriedOutOnce(t *testing.T) {
	t.Parallel()
	db := databaseData{View: databases.View{Database: model.Database{ID: "db_1", Name: "shop"}}}
	roles := []model.DatabaseRole{{Name: "reader", Access: model.AccessRead}}
	for _, form := range []struct {
		page, action string
		data         any
	}{
		{"database_new.html", "/databases", databaseForm{}},
		{"database_settings.html", "/databases/db_1/password", propertiesData{databaseData: db}},
		{"database_roles.html", "/databases/db_1/roles", rolesData{databaseData: db}},
		{"database_roles.html", "/databases/db_1/roles/password", rolesData{databaseData: db, Roles: roles}},
	} {
		var page strings.Builder
		shown := view{User: model.User{Role: model.RoleOwner}, Data: form.data, Once: "req_1"}
		if err := mustPage(t, form.page).ExecuteTemplate(&page, "content", shown); err != nil {
			t.Fatal(err)
		}
		if fields := formOn(t, page.String(), form.action); fields.Get("once") != "req_1" {
			t.Errorf("%s has %v", form.action, fields)
		}
	}
}
