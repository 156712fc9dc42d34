package web

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"holdfast/engine/access"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/webhooks"
)

// TestDatabaseSettingsKeepWhatWasTyped: a form of a database's settings that is refused is shown with all that was typed.
func TestDatabaseSettingsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	for action, typed := range map[string]map[string]string{
		"settings": {
			"project": "proj_z007", "backup_every": "soon", "connection_limit": "7",
			"window_day": "sunday", "window_start": "03:30", "window_minutes": "45",
		},
		"retention": {"backup_retention_days": "12", "confirm": "another"},
		"sleep":     {"sleep_after": "later"},
		"rename":    {"name": "orders", "confirm": "another"},
	} {
		path := "/databases/db_00/" + action
		fields := formOn(t, c.get(t, "/databases/db_00/settings"), path)
		for name, value := range typed {
			fields.Set(name, value)
		}
		got := c.post(t, path, fields)
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", action, got.status)
			continue
		}
		shown := formOn(t, got.page, path)
		delete(typed, "confirm")
		maps.DeleteFunc(typed, func(name, value string) bool { return shown.Get(name) == value })
		if len(typed) > 0 {
			t.Errorf("%s shows %v, and not %v", action, shown, typed)
		}
	}
}

// TestTypedSettings: the settings of PostgreSQL are shown as they were typed, also those that were emptied.
func TestTypedSettings(t *testing.T) {
	t.Parallel()
	all := make([]databases.SettingView, 3)
	for i, name := range []string{"work_mem", "jit", "timezone"} {
		all[i].Name, all[i].Own = name, "own"
	}
	req := &request{r: &http.Request{PostForm: url.Values{"setting.work_mem": {"much"}, "setting.jit": {""}}}}
	for i, want := range []string{"much", "", "own"} {
		if got := req.typedSettings(all)[i]; got.Own != want {
			t.Errorf("%s is %q", got.Name, got.Own)
		}
	}
	if req.r.PostForm = nil; req.typedSettings(all[2:])[0].Own != "own" {
		t.Error("a page without a form does not show what the database has")
	}
}

// TestFormsKeepWhatWasTyped: so do the forms of a bucket, a key and a webhook.
func TestFormsKeepWhatWasTyped(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	_, key, err := c.engine.Access.KeyCreate(c.operatorCall(t), access.NewKey{Name: "ci", Preset: model.PresetReadOnly, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	hook, _, err := c.engine.Webhooks.Create(c.operatorCall(t), webhooks.NewWebhook{Name: "hook", URL: "https://example.com/hook", Events: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []struct {
		page, action string
		typed        url.Values
	}{
		{"/buckets/bucket_1", "/buckets/bucket_1/settings", url.Values{"public": {"on"}, "public_prefixes": {"images/\n*"}, "public_listing": {"on"}}},
		{"/buckets/bucket_1", "/buckets/bucket_1/expiry", url.Values{"expire_after_days": {"12"}}},
		{"/keys/" + key.ID, "/keys/" + key.ID, url.Values{"name": {"\x01"}, "expires": {"7d"}}},
		{"/webhooks/" + hook.ID, "/webhooks/" + hook.ID, url.Values{"name": {"builds"}, "url": {"nowhere"}, "events": {"backup.*, import.*"}}},
	} {
		fields := formOn(t, c.get(t, form.page), form.action)
		fields.Del("enabled")
		maps.Copy(fields, form.typed)
		got := c.post(t, form.action, fields)
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", form.action, got.status)
			continue
		}
		shown := formOn(t, got.page, form.action)
		for name := range form.typed {
			if shown.Get(name) != form.typed.Get(name) {
				t.Errorf("%s: %s is %q, and not %q", form.action, name, shown.Get(name), form.typed.Get(name))
			}
		}
		if shown.Has("enabled") {
			t.Errorf("%s: a box that was not ticked is", form.action)
		}
	}
}
