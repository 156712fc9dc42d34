package engine

import (
	"errors"
	"strings"
	"testing"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres/parameters"
	"holdfast/internal/testenv"
)

func (a *appliance) setting(t *testing.T, id, name string) databases.SettingView {
	t.Helper()
	all, err := a.Databases.SettingList(t.Context(), a.call(model.ActionSettingsList), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no setting %s", name)
	return databases.SettingView{}
}

func (a *appliance) changeSettings(t *testing.T, id string, restart bool, pairs ...string) error {
	change := databases.SettingsChange{Settings: map[string]*string{}, Restart: restart}
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if change.Settings[name] = nil; given {
			change.Settings[name] = &value
		}
	}
	_, err := a.Databases.SettingsUpdate(t.Context(), a.call(model.ActionSettingsUpdate), id, change)
	return err
}

func TestTenantSettings(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	show := func(name string) string { return answer[string](t, c, "show "+name) }
	before, pid := a.setting(t, db.ID, "work_mem"), a.pid(t, db.ID)

	if err := a.changeSettings(t, db.ID, false, "work_mem=5 MB", "statement_timeout=90000", "jit=true", "timezone=Europe/Berlin", "autovacuum_vacuum_cost_delay=3ms"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"work_mem": "5MB", "statement_timeout": "90s", "jit": "on", "timezone": "Europe/Berlin", "autovacuum_vacuum_cost_delay": "3ms",
	} {
		s := a.setting(t, db.ID, name)
		if got := show(name); got != want && got != "1min30s" || s.Value != want || s.Source != databases.SettingDatabase {
			t.Errorf("%s is %s, listed as %+v", name, got, s)
		}
	}
	stale := a.call(model.ActionSettingsUpdate)
	stale.IfMatch = []string{db.SettingsTag()}
	_, err := a.Databases.SettingsUpdate(t.Context(), stale, db.ID, databases.SettingsChange{Settings: map[string]*string{"jit": nil}})
	if refused, is := errors.AsType[*model.Error](err); !is || refused.Reason != model.ReasonChanged || show("jit") != "on" {
		t.Errorf("a change of settings that others have changed: %v", err)
	}
	if a.pid(t, db.ID) != pid {
		t.Error("a change that needs no restart restarted the server")
	}

	// A setting that needs a restart waits for it.
	if err := a.changeSettings(t, db.ID, false, "max_locks_per_transaction=300"); err != nil {
		t.Fatal(err)
	}
	if s := a.setting(t, db.ID, "max_locks_per_transaction"); s.Pending != "300" || s.Value == "300" || !s.NeedsRestart || a.pid(t, db.ID) != pid {
		t.Errorf("pending: %+v", s)
	}
	if err := a.changeSettings(t, db.ID, true, "max_locks_per_transaction=256"); err != nil {
		t.Fatal(err)
	}
	if s := a.setting(t, db.ID, "max_locks_per_transaction"); s.Pending != "" || s.Value != "256" || show(s.Name) != "256" {
		t.Errorf("after the restart: %+v", s)
	}

	// Refused changes change nothing.
	pid = a.pid(t, db.ID)
	for _, bad := range [][]string{
		{"work_mem=plenty"},
		{"work_mem=3TB"},
		{"work_mem=1B"},
		{"statement_timeout=-1"},
		{"jit=maybe"},
		{"timezone=../../etc/passwd"},
		{"timezone=Mars/Base"},
		{"random_page_cost=2", "default_transaction_isolation=none"},
		{"shared_buffers=1GB"},
		{"fsync=off"},
		{"archive_command=true"},
		{"log_directory=/tmp"},
		{"random_page_cost=2", "timezone=Mars/Base"},
		{"work_mem=4MB\nport = 1"},
		{},
	} {
		if err := a.changeSettings(t, db.ID, true, bad...); model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if show("random_page_cost") != "4" || show("work_mem") != "5MB" || a.pid(t, db.ID) != pid {
		t.Error("a refused change has changed something")
	}

	// The operator's settings come first, and are shown as fixed.
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": "7MB"}); err != nil {
		t.Fatal(err)
	}
	if s := a.setting(t, db.ID, "work_mem"); s.Source != databases.SettingOperator || s.Value != "7MB" || show("work_mem") != "7MB" {
		t.Errorf("fixed: %+v", s)
	}
	if err := a.changeSettings(t, db.ID, false, "work_mem=6MB"); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("a fixed setting: %v", err)
	}
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": ""}); err != nil {
		t.Fatal(err)
	}

	// They survive a restart of the appliance, and a reset restores the defaults.
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	if show("work_mem") != "5MB" || show("jit") != "on" {
		t.Error("the settings are lost")
	}
	if err := a.changeSettings(t, db.ID, false, "work_mem", "statement_timeout", "jit", "timezone"); err != nil {
		t.Fatal(err)
	}
	if s := a.setting(t, db.ID, "work_mem"); s.Value != before.Default || s.Source != databases.SettingDefault || show("work_mem") != s.Value || show("jit") != "off" {
		t.Errorf("reset: %+v, before %+v", s, before)
	}
	a.checkTidy(t)
}

// TestTenantSettingsExist checks that every setting of the catalogue exists, has the
// unit that it says, and takes both ends of its range; and that what is in force without
// a change is the default, which a client may also set.
func TestTenantSettingsExist(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	for _, p := range parameters.Catalogue() {
		s := a.setting(t, db.ID, p.Name)
		if unit := answer[string](t, c, "select coalesce(unit, '') from pg_settings where lower(name) = '"+p.Name+"'"); unit != p.Unit {
			t.Errorf("%s has the unit %q, not %q", p.Name, unit, p.Unit)
		}
		if s.Value != s.Default {
			t.Errorf("%s is %s, and its default %s", p.Name, s.Value, s.Default)
		}
		if set, err := p.Normalize(p.Name, s.Default, 0); err != nil || set != s.Default {
			t.Errorf("%s is set to its default %s as %s: %v", p.Name, s.Default, set, err)
		}
		values := append(append([]string{}, p.Choices()...), p.Off, p.Min, s.Max)
		for _, value := range values {
			if value == "" || s.NeedsRestart {
				continue
			}
			if err := a.changeSettings(t, db.ID, false, p.Name+"="+value); err != nil {
				t.Errorf("%s=%s: %v", p.Name, value, errors.Unwrap(err))
			} else if got := a.setting(t, db.ID, p.Name); got.Value != value {
				t.Errorf("%s=%s is %s", p.Name, value, got.Value)
			}
		}
		if err := a.changeSettings(t, db.ID, false, p.Name); err != nil {
			t.Fatal(err)
		}
	}
	// With the highest values of all that need a restart, the server starts.
	change := []string{}
	for _, p := range parameters.Catalogue() {
		if s := a.setting(t, db.ID, p.Name); s.NeedsRestart {
			highest := s.Max
			if p.Kind == parameters.Boolean {
				highest = "on"
			}
			change = append(change, p.Name+"="+highest)
		}
	}
	if err := a.changeSettings(t, db.ID, true, change...); err != nil {
		t.Errorf("%v: %v", change, err)
	}
}
