package engine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
)

// A source that cannot be followed is refused with what to run there, and nothing is left of the attempt at either side.
func TestImportFollowRefuses(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	plain := newRunning(t, postgrestest.Binaries(t), "create table t (n int primary key)", func(s map[string]string) { s["wal_level"] = "replica" })
	a := startMajors(t)
	source := o.Superuser(t, "app")
	const none = "create table public.plain (n int)"
	for _, test := range []struct {
		name, before, after string
		origin              *origin
		publication, says   string
	}{
		{"wal_level", "", "", plain, "everything", "ALTER SYSTEM SET wal_level = 'logical';"},
		{"no publication", "", "", o, "nothing", `CREATE PUBLICATION "nothing" FOR `},
		{"no right", "alter role mover noreplication", "alter role mover replication", o, "everything", `ALTER ROLE "mover" REPLICATION;`},
		{"no identity", none, "drop table public.plain", o, "everything", `ALTER TABLE "public"."plain" REPLICA IDENTITY FULL;`},
		{"not every change", "create publication half for table public.orders with (publish = 'insert')", "", o, "half", `SET (publish = 'insert, update, delete, truncate');`},
		{"a filter", "create publication partly for table public.orders where (id > 7)", "", o, "partly", "public.orders"},
	} {
		if test.before != "" {
			if _, err := source.Exec(t.Context(), test.before); err != nil {
				t.Fatal(err)
			}
		}
		record := a.awaitImport(t, a.beginImport(t, imports.NewImport{
			Name: "shop", SourceURL: model.NewSecret(test.origin.url()), Follow: true, Publication: test.publication,
		}).ID)
		if record.Status != model.ImportFailed || !strings.Contains(record.Error, test.says) || record.Follow.SourceURL != nil {
			t.Errorf("%s: %s: %s", test.name, record.Status, record.Error)
		}
		if test.after != "" {
			if _, err := source.Exec(t.Context(), test.after); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.awaitIdle(t)
	o.checkNoSlot(t)
	a.checkTidy(t)
	for says, in := range map[string]imports.NewImport{
		"version: PostgreSQL 15": {Follow: true, Publication: "everything", Version: "15"},
		"publication: must name": {Follow: true},
		"publication: goes with": {Publication: "everything"},
	} {
		in.Project, in.Name, in.SourceURL = a.project, "shop", model.NewSecret(o.url())
		if _, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), in); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s: %v", says, err)
		}
	}
}

// The owner of the new database, as whom the source's code runs there, cannot lead the subscription elsewhere, read its
// connection, or make another; and the gateway admits only who has the token. It may drop the subscription, with which a
// hostile source ends its own import.
func TestImportFollowCannotBeRedirected(t *testing.T) {
	t.Parallel()
	o := newRunning(t, postgrestest.Binaries(t), running)
	a := startMajors(t)
	record := a.follow(t, o, "")
	owner, err := a.Databases.Instances.ConnectLocal(t.Context(), record.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(t.Context())
	name := record.Follow.Slot
	for _, attack := range []string{
		"alter subscription " + name + " connection 'host=192.0.2.1 user=u password=p dbname=d'",
		"alter subscription " + name + " set publication other",
		"alter subscription " + name + " set (run_as_owner = false)",
		"alter subscription " + name + " set (password_required = true)",
		"alter subscription " + name + " disable",
		"alter subscription " + name + " refresh publication",
		"alter subscription " + name + " owner to current_user",
		"alter subscription " + name + " rename to mine",
		"create subscription mine connection 'host=192.0.2.1 user=u password=p dbname=d' publication p with (connect = false)",
		"select subconninfo from pg_subscription",
	} {
		if _, err := owner.Exec(t.Context(), attack); err == nil && !strings.Contains(attack, "owner to current_user") {
			t.Errorf("the owner may: %s", attack)
		}
	}
	sockets, err := filepath.Glob(filepath.Join(a.SocketDir(), "i", ".s.PGSQL.*"))
	if err != nil || len(sockets) == 0 {
		t.Fatalf("the gateway's socket: %v, %v", sockets, err)
	}
	for _, password := range []string{"", "guess"} {
		config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s user=import dbname=import password='%s'", filepath.Dir(sockets[0]), strings.TrimPrefix(filepath.Ext(sockets[0]), "."), password))
		if err != nil {
			t.Fatal(err)
		}
		if conn, err := pgx.ConnectConfig(t.Context(), config); err == nil {
			conn.Close(t.Context())
			t.Errorf("the gateway admits the password %q", password)
		}
	}
	noPasswordIn(t, a.cfg.DataDir)
	a.mustCutOver(t, o, record.ID)
}

// Without a version the new database has the default one if that can follow, else the newest that can; without any the
// refusal says what to install.
func TestImportFollowsWithTheNewestThatCan(t *testing.T) {
	t.Parallel()
	own := postgrestest.Binaries(t)
	if own.Major >= postgres.OldestFollower {
		t.Skip("the tests run on a version that can follow")
	}
	o := newRunning(t, own, running)
	cfg := testConfig(t, newDataDir(t))
	var on shelf
	on.put(own)
	cfg.Search = on.search()
	cfg.Search.Explicit = own.Dir
	a := startEngineOn(t, cfg)
	in := imports.NewImport{Project: a.project, Name: "shop", SourceURL: model.NewSecret(o.url()), Follow: true, Publication: "everything"}
	if _, err := a.Imports.Create(t.Context(), a.call(model.ActionImportCreate), in); model.CodeOf(err) != model.CodeValidation || !strings.Contains(err.Error(), "version: PostgreSQL 15") {
		t.Errorf("with nothing newer: %v", err)
	}
	on.put(postgrestest.Major(t, 16), postgrestest.Major(t, 17))
	record := a.follow(t, o, "")
	if db, err := a.Databases.Record(record.Database); err != nil || db.Major != 17 {
		t.Errorf("the new database runs PostgreSQL %d: %v", db.Major, err)
	}
	a.mustCutOver(t, o, record.ID)
}
