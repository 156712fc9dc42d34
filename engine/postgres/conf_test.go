package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

func TestConfigIsInForce(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"work_mem": "7MB"}
	})
	conn := d.Superuser(t, "postgres")
	for name, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "data_checksums": "on", "ssl": "on",
		"ssl_min_protocol_version": "TLSv1.2", "password_encryption": "scram-sha-256",
		"unix_socket_permissions": "0700", "wal_level": "replica", "max_slot_wal_keep_size": "4GB",
		"jit": "off", "work_mem": "7MB", "listen_addresses": `"127.0.0.1"`, "server_encoding": "UTF8", "lc_collate": "C.UTF-8",
		"log_connections": "off", "restart_after_crash": "on", "shared_preload_libraries": "pg_stat_statements",
	} {
		var got string
		err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got)
		if err != nil && name == "lc_collate" { // removed in PostgreSQL 16
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s = %q, %v, want %q", name, got, err, want)
		}
	}
	var wrong int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_file_settings where error is not null").Scan(&wrong); err != nil || wrong > 0 {
		t.Errorf("%d settings are wrong, %v", wrong, err)
	}
}

// nastyTexts break careless quoting.
func nastyTexts() []string {
	return []string{
		"two words", `it's`, `''`, `back\slash`, `\'`, `ends in \`, "tab\there", `"quoted"`, "#comment", "a,b",
		"all", "sameuser", "replication", "+group", "@file", "größe 漢字 😀", "= 1", "$user", "*", " ", "%m",
	}
}

func TestPostgreSQLReadsQuotedSettings(t *testing.T) {
	t.Parallel()
	values := map[string]string{}
	for n, text := range append(nastyTexts(), "line\nbreak\r\x01", "") {
		values["holdfast.n"+string(rune('a'+n))] = text
	}
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) { s.Config.Settings = values })
	conn := d.Superuser(t, "postgres")
	for name, want := range values {
		var got string
		if err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%q was read %q, %v", want, got, err)
		}
	}
}

func TestPostgreSQLReadsQuotedRules(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	hba := d.Spec.HBA
	hba.Users = nastyTexts()
	conn := d.Superuser(t, "postgres")
	for _, database := range nastyTexts() {
		hba.Database = database
		if err := d.Supervisor.Update(t.Context(), d.Spec.ID, hba); err != nil {
			t.Fatalf("database %q: %v", database, err)
		}
		var databases, users []string
		err := conn.QueryRow(t.Context(), `select database, user_name from pg_hba_file_rules
			where auth_method = 'scram-sha-256'`).Scan(&databases, &users)
		if err != nil || len(databases) != 1 || databases[0] != database || strings.Join(users, "|") != strings.Join(hba.Users, "|") {
			t.Errorf("database %q, users %q were read %q, %q, %v", database, hba.Users, databases, users, err)
		}
	}
}

// A name that is a keyword when unquoted is only a name: a user called "all" does
// not match every user.
func TestKeywordsAreNamesInRules(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	hba := d.Spec.HBA
	hba.Users, hba.Database = []string{"all"}, "all"
	if err := d.Supervisor.Update(t.Context(), d.Spec.ID, hba); err != nil {
		t.Fatal(err)
	}
	if err := tryConnect(t, d.URL("app", d.Tenant.OwnerPassword)); err == nil {
		t.Error("app was let in by the rules of a user called all")
	}
}

func TestWriteConfigRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, value := range map[string]string{"a = 1\nfsync": "off", "": "x", "a-b": "x", "work_mem": "nul\x00"} {
		c := postgres.Config{Port: 1, SocketDir: dir, Settings: map[string]string{name: value}}
		if _, err := postgres.WriteConfig(binaries.Set{}, dir, c); err == nil {
			t.Errorf("%q = %q was written", name, value)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "postgresql.conf")); err == nil {
		t.Error("a refused configuration was written")
	}
}
