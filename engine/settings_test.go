package engine

import (
	"maps"
	"testing"

	"holdfast/engine/model"
)

func TestDatabaseSettings(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	fitted := answer[string](t, c, "show work_mem")
	set := func(settings map[string]string) error {
		_, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, settings)
		return err
	}
	check := func(want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got := answer[string](t, c, "show "+name); got != value {
				t.Errorf("%s is %s, not %s", name, got, value)
			}
		}
	}
	if err := set(map[string]string{"work_mem": "17MB", "log_min_duration_statement": "250ms", "random_page_cost": "1.1"}); err != nil {
		t.Fatal(err)
	}
	applied := map[string]string{"work_mem": "17MB", "log_min_duration_statement": "250ms", "random_page_cost": "1.1"}
	check(applied)
	a.checkTidy(t)

	// Settings that PostgreSQL does not start with are reverted completely.
	for name, bad := range map[string]map[string]string{
		"no such value":    {"work_mem": "plenty"},
		"no such setting":  {"work_memory": "4MB"},
		"too much":         {"shared_buffers": "4096GB"},
		"at odds":          {"max_connections": "3"},
		"one of them good": {"work_mem": "5MB", "wal_buffers": "-7"},
		"a line break":     {"work_mem": "4MB\nport = 1"},
	} {
		err := set(bad)
		if model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
		check(applied)
		if record, err := a.Databases.Record(db.ID); err != nil || !maps.Equal(record.Settings, applied) {
			t.Errorf("%s: recorded %v, %v", name, record.Settings, err)
		}
		if view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID); err != nil || view.Status != model.DatabaseAvailable {
			t.Errorf("%s: %s %s, %v", name, view.Status, view.StatusReason, err)
		}
	}
	// Settings survive a restart of the appliance, and an empty value restores the default.
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	check(applied)
	if err := set(map[string]string{"work_mem": "", "random_page_cost": ""}); err != nil {
		t.Fatal(err)
	}
	check(map[string]string{"work_mem": fitted, "random_page_cost": "4", "log_min_duration_statement": "250ms"})
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
}

func TestReservedSettings(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	pid := a.pid(t, db.ID)
	for _, name := range []string{
		"port", "listen_addresses", "unix_socket_directories", "ssl", "ssl_min_protocol_version", "hba_file",
		"data_directory", "fsync", "full_page_writes", "wal_level", "archive_command", "restore_command",
		"shared_preload_libraries", "session_preload_libraries", "dynamic_library_path", "include", "include_dir",
		"password_encryption", "logging_collector", "log_directory", "cluster_name", "primary_conninfo",
		"Port", "work_mem = 1\nport", "", "wörk_mem",
	} {
		_, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{name: "x"})
		if model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%q: %v", name, err)
		}
	}
	if now := a.pid(t, db.ID); now != pid {
		t.Error("a refused setting restarted the instance")
	}
	connect(t, c)
}
