package web

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"holdfast/engine/databases"
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
