package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// replicating starts an instance with a role that may replicate.
func replicating(t *testing.T, bin binaries.Set) (*postgrestest.Database, model.Secret) {
	t.Helper()
	d := postgrestest.InstanceOf(t, bin, func(spec *postgres.Spec) {
		spec.Config.Settings = postgres.ReplicationSettings(1 << 30)
		spec.HBA.Users = append(spec.HBA.Users, "app_replication")
	})
	password := model.NewSecret("a-long-replication-password")
	d.Tenant.Replication, d.Tenant.ReplicationPassword = "app_replication", password
	if err := postgres.Provision(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	return d, password
}

// walsender opens a session that takes replication commands: kind is "database", or
// "true" for physical replication.
func walsender(t *testing.T, url, kind string) (*pgconn.PgConn, error) {
	t.Helper()
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"] = kind
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// The role that may replicate can copy the files of the server with BASE_BACKUP: PostgreSQL has no right for logical
// replication alone. So no file of the data directory may give power over anything besides the tenant's own data.
func TestReplicationRoleCopiesFiles(t *testing.T) {
	t.Parallel()
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		d, password := replicating(t, bin)
		url := d.URL("app_replication", password)
		if _, err := walsender(t, url, "true"); sqlState(err) != "28000" {
			t.Errorf("physical replication: %v", err)
		}
		conn, err := walsender(t, url, "database")
		if err != nil {
			t.Fatal(err)
		}
		conn.Frontend().SendQuery(&pgproto3.Query{String: "BASE_BACKUP (CHECKPOINT 'fast')"})
		if err := conn.Frontend().Flush(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var copied bytes.Buffer
		for over := false; !over; {
			message, err := conn.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			switch m := message.(type) {
			case *pgproto3.CopyData:
				copied.Write(m.Data)
			case *pgproto3.ErrorResponse:
				t.Fatalf("BASE_BACKUP: %s", m.Message)
			case *pgproto3.ReadyForQuery:
				over = true
			}
		}
		for _, part := range []string{"BEGIN CERTIFICATE", "pg_hba.conf"} {
			if !bytes.Contains(copied.Bytes(), []byte(part)) {
				t.Errorf("%d bytes without %q: the test does not see files", copied.Len(), part)
			}
		}
		if bytes.Contains(copied.Bytes(), []byte("PRIVATE KEY")) {
			t.Error("the copy has the server's private key, which is good for every name of the appliance")
		}
		for _, secret := range []model.Secret{d.Tenant.OwnerPassword, d.Tenant.ReadOnlyPassword, password} {
			if bytes.Contains(copied.Bytes(), []byte(secret.Reveal())) {
				t.Error("the copy has a password")
			}
		}
		super := d.Superuser(t, "postgres")
		var verifier *string
		if err := super.QueryRow(t.Context(), "select rolpassword from pg_authid where rolname = 'holdfast'").Scan(&verifier); err != nil || verifier != nil {
			t.Errorf("the appliance's own role has a verifier to copy: %v", err)
		}
	})
}

// The role that may replicate has no other power.
func TestReplicationRolePowers(t *testing.T) {
	t.Parallel()
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		d, password := replicating(t, bin)
		allowed(t, d.Owner(t), "create table kept as select 1 as n", "create publication p for table kept")
		allowed(t, d.Superuser(t, "postgres"), "select pg_create_physical_replication_slot('holdfast', true)")
		connect := func(t testing.TB) *pgx.Conn {
			conn, err := pgx.Connect(t.Context(), d.URL("app_replication", password))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			return conn
		}
		var n int
		if err := connect(t).QueryRow(t.Context(), "select n from kept").Scan(&n); err != nil || n != 1 {
			t.Errorf("its first copy reads %d, %v", n, err)
		}
		for name, statement := range map[string]string{
			"write":                  "insert into kept values (2)",
			"become superuser":       "alter role app_replication superuser",
			"become owner":           "set role app",
			"become the superuser":   "set role holdfast",
			"give the right":         "alter role app replication",
			"a role of its own":      "create role more replication",
			"verifiers":              "select rolpassword from pg_authid",
			"a file":                 "select pg_read_file('pg_replslot/server.key')",
			"a program":              "copy kept to program 'id'",
			"a subscription":         "create subscription s connection 'host=/tmp' publication p with (connect = false)",
			"a publication of all":   "create publication q for all tables",
			"a table":                "create table public.mine (n int)",
			"a setting":              "alter system set wal_level = minimal",
			"another database":       "create database more",
			"others' sessions":       "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'holdfast'",
			"a base backup by SQL":   "select pg_backup_start('x')",
			"a large object":         "select lo_create(0)",
			"an extension":           "create extension hstore",
			"the owner's connection": "alter role app connection limit 0",
		} {
			if err := attempt(t, connect(t), statement); sqlState(err) == "" {
				t.Errorf("%s: %s: %v", name, statement, err)
			}
		}
		// A file on the server's side needs more than REPLICATION.
		conn, err := walsender(t, d.URL("app_replication", password), "database")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "BASE_BACKUP (TARGET 'server', TARGET_DETAIL '/tmp/holdfast-attack', WAL false)").ReadAll(); sqlState(err) != "42501" {
			t.Errorf("a backup into a file of the server: %v", err)
		}
		// Neither other role may replicate, and the right is gone once replication is off.
		for role, secret := range map[string]model.Secret{"app": d.Tenant.OwnerPassword, "app_readonly": d.Tenant.ReadOnlyPassword} {
			if _, err := walsender(t, d.URL(role, secret), "database"); sqlState(err) != "42501" && sqlState(err) != "28000" {
				t.Errorf("%s: %v", role, err)
			}
		}
		d.Tenant.Replication = ""
		if err := postgres.Provision(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
			t.Fatal(err)
		}
		if _, err := walsender(t, d.URL("app_replication", password), "database"); sqlState(err) == "" {
			t.Errorf("after the end of replication: %v", err)
		}
		if found := strings.Join(harm(t, d.Superuser(t, "app")), "\n"); strings.Contains(found, "replication replication") {
			t.Errorf("left: %s", found)
		}
	})
}

// A client may hold or drop the archive's slot; the appliance takes it back. A slot in use is dropped only by force.
func TestReplicationSlots(t *testing.T) {
	t.Parallel()
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		d, password := replicating(t, bin)
		super := d.Superuser(t, "postgres")
		allowed(t, super, "select pg_create_physical_replication_slot('holdfast', true)")
		stream := func(command string) *pgconn.PgConn {
			t.Helper()
			conn, err := walsender(t, d.URL("app_replication", password), "database")
			if err != nil {
				t.Fatal(err)
			}
			conn.Frontend().SendQuery(&pgproto3.Query{String: command})
			if err := conn.Frontend().Flush(); err != nil {
				t.Fatal(err)
			}
			if message, err := conn.ReceiveMessage(t.Context()); err != nil {
				t.Fatal(err)
			} else if _, ok := message.(*pgproto3.CopyBothResponse); !ok {
				t.Fatalf("%s: %#v", command, message)
			}
			return conn
		}
		active := func(slot string) (is bool) {
			t.Helper()
			if err := super.QueryRow(t.Context(), "select active from pg_replication_slots where slot_name = $1", slot).Scan(&is); err != nil {
				t.Fatal(err)
			}
			return is
		}
		if ended, err := postgres.FreeOwnSlot(t.Context(), super, "holdfast"); err != nil || ended {
			t.Errorf("a slot that nobody holds: %t, %v", ended, err)
		}
		var from string
		if err := super.QueryRow(t.Context(), "select restart_lsn::text from pg_replication_slots where slot_name = 'holdfast'").Scan(&from); err != nil {
			t.Fatal(err)
		}
		stream("START_REPLICATION SLOT holdfast PHYSICAL " + from)
		testenv.Eventually(t, "the client", func() bool { return active("holdfast") })
		if ended, err := postgres.FreeOwnSlot(t.Context(), super, "holdfast"); err != nil || !ended {
			t.Errorf("a slot that a client holds: %t, %v", ended, err)
		}
		testenv.Eventually(t, "the end of the client", func() bool { return !active("holdfast") })

		conn, err := walsender(t, d.URL("app_replication", password), "database")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "CREATE_REPLICATION_SLOT s LOGICAL test_decoding NOEXPORT_SNAPSHOT").ReadAll(); err != nil {
			t.Fatal(err)
		}
		slots, err := postgres.Slots(t.Context(), super, "holdfast")
		if err != nil || len(slots) != 1 || slots[0].Name != "s" || slots[0].Plugin != "test_decoding" || slots[0].Database != "app" || slots[0].Active || slots[0].Lost() || slots[0].Safe == nil {
			t.Errorf("%+v, %v", slots, err)
		}
		stream("START_REPLICATION SLOT s LOGICAL 0/0")
		if err := postgres.DropSlot(t.Context(), super, "holdfast", "s", false); !errors.Is(err, postgres.ErrSlotActive) {
			t.Errorf("a slot in use: %v", err)
		}
		if err := postgres.DropSlot(t.Context(), super, "holdfast", "s", true); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"s", "holdfast", "none"} {
			if err := postgres.DropSlot(t.Context(), super, "holdfast", name, true); !errors.Is(err, postgres.ErrNoSlot) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
