package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// An owner's settings of the database apply to every session in it that does not
// override them. They may break the owner's own sessions; the appliance's must
// work, in time.
func TestOwnersHarm(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	for name, harm := range map[string]func(*testing.T, *postgrestest.Database){
		"settings": harmfulSettings, "extremes": extremeSettings, "options": databaseOptions,
		"connections": everyConnection, "catalog": lockedCatalog,
	} {
		t.Run(name, func(t *testing.T) { harm(t, d) })
	}
}

func harmfulSettings(t *testing.T, d *postgrestest.Database) {
	allowed(t, d.Owner(t), "drop table if exists orders", "create table orders (n int)", "create policy p on orders using (n > 0)")
	for _, setting := range []string{
		"local_preload_libraries = 'nothing'", "session_authorization = 'app'", "role = 'app'", "search_path = public",
		"default_table_access_method = 'nothing'", "default_tablespace = 'pg_global'", "temp_tablespaces = 'nothing'",
		"default_text_search_config = 'nothing'", "client_encoding = 'SQL_ASCII'", "datestyle = 'German'", "timezone = 'Pacific/Kiritimati'",
		"bytea_output = 'escape'", "statement_timeout = '1ms'", "exit_on_error = on", "default_transaction_read_only = on",
		"default_transaction_isolation = 'serializable'", "row_security = off", "standard_conforming_strings = off",
	} {
		t.Run(setting, func(t *testing.T) {
			allowed(t, d.Owner(t), "alter database app set "+setting)
			acts(t, d, func() *pgx.Conn { return d.Superuser(t, "app") })
			resetDatabase(t, d)
		})
	}
}

// resetDatabase reverts what may lock out the owner itself.
func resetDatabase(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	allowed(t, d.Superuser(t, "postgres"), "alter database app reset all")
}

// Every setting that an owner may change, at its extremes, all at once.
func extremeSettings(t *testing.T, d *postgrestest.Database) {
	for _, extreme := range []string{
		"case vartype when 'bool' then case boot_val when 'on' then 'off' else 'on' end when 'enum' then enumvals[1] else min_val end",
		"case vartype when 'bool' then case boot_val when 'on' then 'off' else 'on' end when 'enum' then enumvals[cardinality(enumvals)] else max_val end",
	} {
		owner := d.Owner(t)
		allowed(t, owner, "drop table if exists orders", "create table orders (n int)", "create policy p on orders using (n > 0)")
		rows, err := owner.Query(t.Context(), `select format('alter database app set %I = %L', name, `+extreme+`) from pg_settings
			where context = 'user' and vartype <> 'string'`)
		if err != nil {
			t.Fatal(err)
		}
		statements, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		set := 0
		for _, statement := range statements {
			if _, err := owner.Exec(t.Context(), statement); err == nil {
				set++
			}
		}
		if set < 100 {
			t.Errorf("only %d of %d settings could be made", set, len(statements))
		}
		acts(t, d, func() *pgx.Conn { return d.Superuser(t, "app") })
		resetDatabase(t, d)
	}
}

// What an owner can set on the database as a whole. Provision resets both of these:
// a template would not be found when the directory is restored, and a database
// without connections admits no session.
func databaseOptions(t *testing.T, d *postgrestest.Database) {
	allowed(t, d.Owner(t),
		"alter database app is_template true", "alter database app connection limit 0",
		"revoke all on database app from app_readonly", "revoke all on database app from app", "grant all on database app to public")
	if err := tryConnect(t, d.URL("app", d.Tenant.OwnerPassword)); sqlState(err) != "53300" {
		t.Fatalf("the limit shows nothing: %v", err)
	}
	acts(t, d, func() *pgx.Conn { return d.Superuser(t, "app") })
	allowed(t, d.Owner(t), "create temp table t (n int)")
	refused(t, d.ReadOnly(t), "42501 25006", []string{"create temp table t (n int)", "create schema s"})
	var template bool
	err := d.Superuser(t, "postgres").QueryRow(t.Context(), "select datistemplate from pg_database where datname = 'app'").Scan(&template)
	if err != nil || template {
		t.Errorf("template %v, %v", template, err)
	}
}

// A tenant that takes every connection.
func everyConnection(t *testing.T, d *postgrestest.Database) {
	opened := 0
	for ; opened < 100; opened++ {
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://app:%s@127.0.0.1:%d/app?sslmode=disable", d.Tenant.OwnerPassword.Reveal(), d.Spec.Config.Port))
		if err != nil {
			if sqlState(err) != "53300" {
				t.Errorf("connection %d: %v", opened, err)
			}
			break
		}
		defer conn.Close(t.Context())
	}
	if opened < 10 || opened == 100 {
		t.Errorf("%d connections", opened)
	}
	shutIn(t, d, opened)
}

// A tenant makes every new session in its database wait: later requests queue
// behind a request for an exclusive lock, and the owner may request one on a
// catalog.
func lockedCatalog(t *testing.T, d *postgrestest.Database) {
	holder, waiter := d.Owner(t), d.Owner(t)
	allowed(t, holder, "begin", "lock table pg_class in access share mode")
	ended := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(t.Context(), "vacuum full pg_class")
		ended <- err
	}()
	awaitCount(t, d.Superuser(t, "postgres"), "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and not granted")
	shutIn(t, d, 2)
	err := <-ended
	if err == nil { // it got the lock of the one who ended first
		_, err = waiter.Exec(t.Context(), "select 1")
	}
	if sqlState(err) != "57P01" {
		t.Errorf("the one who waited: %v", err)
	}
}

// shutIn checks that the appliance can end the tenant's sessions, at least as many
// as given: others may just be ending.
func shutIn(t *testing.T, d *postgrestest.Database, sessions int) {
	t.Helper()
	ctx := within(t, 5*time.Second)
	super := d.Superuser(t, "postgres")
	if err := postgres.SetPasswords(ctx, super, d.Tenant); err != nil {
		t.Error(err)
	}
	if usage, err := postgres.Stats(ctx, super, "app"); err != nil || usage.Connections < sessions {
		t.Errorf("usage %+v, %v, want %d connections", usage, err, sessions)
	}
	if n, err := postgres.TerminateSessions(ctx, super); err != nil || n < sessions {
		t.Errorf("ended %d, %v, want %d", n, err, sessions)
	}
	d.Owner(t)
}

// awaitCount waits until a count is not 0.
func awaitCount(t *testing.T, conn *pgx.Conn, query string) {
	t.Helper()
	testenv.Eventually(t, query, func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
}
