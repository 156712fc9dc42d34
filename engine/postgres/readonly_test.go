package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// objects returns statements that create what the owner has, in its own schema, and
// a large object.
func objects(schema, largeObject string) []string {
	return strings.Split(strings.NewReplacer("$#", largeObject, "$", schema).Replace(`create schema $
select lo_from_bytea($#, 'x')
create table $.t (n serial primary key, m int, k text)
insert into $.t values (1, 1, 'a')
create view $.v as select * from $.t
create materialized view $.mv as select * from $.t
create unique index on $.mv (n)
create table $.parts (n int) partition by range (n)
create table $.part1 partition of $.parts for values from (0) to (10)
create sequence $.seq
select nextval('$.seq')
create type $.kind as enum ('a', 'b')
create domain $.dom as int not null
create function $.plain() returns int language sql as 'select 1'
create function $.plain_reader() returns int language sql as 'select n from $.t'
create function $.plain_writer() returns int language sql as 'insert into $.t values (2) returning n'
create procedure $.proc() language sql as 'insert into $.t values (2)'`), "\n")
}

// The two SQLSTATEs of a refusal.
const (
	readOnlyTransaction = "25006"
	noPrivilege         = "42501"
)

// reader is a role that only reads.
type reader struct {
	name    string
	connect func(testing.TB) *pgx.Conn
}

// readers returns the read-only role and another role that reads, which it makes.
func readers(t *testing.T, d *postgrestest.Database) []reader {
	t.Helper()
	return []reader{{"app_readonly", d.ReadOnly}, {"client_read", d.AddRole(t, model.AccessRead).Connect}}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner := d.Owner(t)
	allowed(t, owner, objects("before", "4711")...)
	allowed(t, owner, grantedToPublic...)
	for _, r := range readers(t, d) {
		t.Run("attacks by "+r.name, func(t *testing.T) { readOnlyAttackers(t, d, owner, r) })
	}
	t.Run("function call", func(t *testing.T) { readOnlyByFunctionCall(t, d) })
	t.Run("grants", func(t *testing.T) { readOnlyAndGrants(t, d) })
	t.Run("rotation", func(t *testing.T) { rotationCoversBothRoles(t, d) })
}

// The read-only role writes nothing: at login because its transactions are
// read-only, and after it has switched that off because it has no privilege.
// Nothing must have changed in either case.
func readOnlyAttackers(t *testing.T, d *postgrestest.Database, owner *pgx.Conn, r reader) {
	super := d.Superuser(t, "app")
	for _, mode := range []struct {
		name   string
		start  []string
		states string
	}{
		{"as it logs in", nil, readOnlyTransaction + " " + noPrivilege},
		{"switched off", []string{"set default_transaction_read_only = off"}, noPrivilege},
		{"read write", []string{"set session characteristics as transaction read write"}, noPrivilege},
	} {
		for _, set := range []string{"before", "later"} {
			t.Run(mode.name+"/"+set, func(t *testing.T) {
				conn, largeObject := r.connect(t), "4711"
				allowed(t, conn, mode.start...)
				if set == "later" {
					largeObject = "4712"
					allowed(t, owner, "drop schema if exists later cascade", "select lo_unlink(oid) from pg_largeobject_metadata where oid = 4712")
					allowed(t, owner, objects("later", "4712")...)
				}
				allowed(t, conn, "select * from "+set+".t, "+set+".v, "+set+".mv, "+set+".parts, "+set+".seq")
				was := contents(t, super)
				for _, statement := range readOnlyAttacks(set, largeObject, r.name) {
					readOnlyAttack(t, conn, statement, mode.states)
				}
				if is := contents(t, super); !slices.Equal(is, was) {
					t.Errorf("something was written: %s", difference(was, is))
				}
				if found := harm(t, super); len(found) > 0 {
					t.Errorf("afterwards: %s", strings.Join(found, "; "))
				}
			})
		}
	}
}

// readOnlyAttack runs one statement, by itself and in every kind of transaction.
func readOnlyAttack(t *testing.T, conn *pgx.Conn, attack, states string) {
	t.Helper()
	statement := attack
	if strings.HasPrefix(attack, "[") {
		var others string
		others, statement, _ = strings.Cut(attack[1:], "] ")
		states += " " + others
	}
	for _, how := range []string{"", "begin", "begin read write", "begin; set transaction read write", "begin; savepoint a"} {
		allowed(t, conn, how)
		err := attempt(t, conn, statement)
		if conn.IsClosed() {
			t.Fatalf("%s; %s: %v", how, statement, err)
		}
		allowed(t, conn, "rollback")
		switch got := sqlState(err); {
		case contains(states, got):
		case err == nil && contains(states, "warning"):
		case how != "" && got == "25001": // not in a transaction block
		case how == "" && got == "25P01": // only in a transaction block
		default:
			t.Errorf("%s; %s: %v, want SQLSTATE %s", how, statement, err, states)
		}
	}
}

// contents returns everything in the tenant's database and about its roles, as
// comparable lines. Absent privileges count as the default ones, which a GRANT that
// grants nothing leaves.
func contents(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select oid::regclass || ' ' || query_to_xml('select * from ' || oid::regclass, true, true, '')::text from pg_class
			where relkind in ('r', 'm', 'S') and relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_|^information_schema$')
		union all select 'class ' || c.oid::regclass || coalesce(relacl, acldefault(case relkind when 'S' then 's' else 'r' end::"char", relowner))::text
			|| (to_jsonb(c) - '{relacl,relpages,reltuples,relfrozenxid,relminmxid,relallvisible,relallfrozen}'::text[])::text from pg_class c where oid >= 16384
		union all select 'proc ' || to_jsonb(p)::text from pg_proc p where oid >= 16384 or proacl is not null
		union all select 'type ' || to_jsonb(p)::text from pg_type p where oid >= 16384
		union all select 'enum ' || to_jsonb(p)::text from pg_enum p
		union all select 'namespace ' || coalesce(nspacl, acldefault('n', nspowner))::text || (to_jsonb(p) - 'nspacl')::text from pg_namespace p where nspname !~ '^pg_(toast_)?temp_'
		union all select 'default acl ' || to_jsonb(p)::text from pg_default_acl p
		union all select 'description ' || to_jsonb(p)::text from pg_description p where objoid >= 16384
		union all select 'trigger ' || to_jsonb(p)::text from pg_trigger p
		union all select 'rule ' || to_jsonb(p)::text from pg_rewrite p where oid >= 16384
		union all select 'policy ' || to_jsonb(p)::text from pg_policy p
		union all select 'publication ' || to_jsonb(p)::text from pg_publication p
		union all select 'extension ' || to_jsonb(p)::text from pg_extension p
		union all select 'large object ' || to_jsonb(p)::text from pg_largeobject p
		union all select 'large object ' || to_jsonb(p)::text from pg_largeobject_metadata p
		union all select 'role ' || to_jsonb(p)::text from pg_authid p
		union all select 'member ' || to_jsonb(p)::text from pg_auth_members p
		union all select 'setting ' || to_jsonb(p)::text from pg_db_role_setting p
		union all select 'database ' || (to_jsonb(p) - 'datfrozenxid' - 'datminmxid')::text from pg_database p
		union all select 'shared description ' || to_jsonb(p)::text from pg_shdescription p
		union all select 'slot ' || slot_name from pg_replication_slots
		order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func difference(was, is []string) string {
	var changed []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			changed = append(changed, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			changed = append(changed, "+ "+line)
		}
	}
	return strings.Join(changed, "\n")
}

// grantedToPublic is what an owner grants to PUBLIC, which includes the read-only
// role: by a grant, or by a function that runs with the owner's rights.
var grantedToPublic = []string{
	"create schema given", "grant usage, create on schema given to public",
	"create table given.inbox (n int)", "grant insert, update, delete on given.inbox to public",
	"create sequence given.seq", "grant usage on sequence given.seq to public",
	"create table given.log (n int)",
	"create function given.log() returns void security definer language sql set search_path = given as 'insert into log values (1)'",
	"create function given.closed() returns void security definer language sql set search_path = given as 'insert into log values (1)'",
	"revoke execute on function given.closed() from public",
}

// The role may write what the owner has granted to PUBLIC, but only when its client
// asks to write; at login, not even that. PostgreSQL cannot lock
// default_transaction_read_only, and no grant can except a role; DESIGN.md says so.
func readOnlyAndGrants(t *testing.T, d *postgrestest.Database) {
	owner := d.Owner(t)
	allowed(t, owner, "create table direct (n int)", "grant insert on direct to app_readonly", "grant temp on database app to public")
	given := []string{
		"insert into given.inbox values (1)", "update given.inbox set n = 2", "delete from given.inbox",
		"select nextval('given.seq')", "create table given.own (n int)", "insert into given.own values (1)", "drop table given.own",
		"select given.log()", "insert into direct values (1)", "create temp table mine (n int)",
	}
	ro := d.ReadOnly(t)
	refused(t, ro, readOnlyTransaction, slices.DeleteFunc(slices.Clone(given), func(s string) bool { return strings.Contains(s, " given.own values") || strings.HasPrefix(s, "drop") }))
	allowed(t, ro, "set default_transaction_read_only = off")
	allowed(t, ro, given...)
	refused(t, ro, "42501", []string{
		"select given.closed()", "insert into given.log values (1)", "select * from direct for update", "drop table direct", "truncate direct",
		"alter table given.inbox add m int",
	})
	// What the owner revokes is closed again.
	allowed(t, owner, "revoke all on given.inbox, direct from public, app_readonly", "revoke create on schema given from public", "revoke execute on function given.log() from public")
	refused(t, ro, "42501", []string{"insert into given.inbox values (1)", "insert into direct values (1)", "create table given.own (n int)", "select given.log()"})
}

// The protocol's own function calls need the same privileges.
func readOnlyByFunctionCall(t *testing.T, d *postgrestest.Database) {
	ro := d.ReadOnly(t)
	allowed(t, ro, "set default_transaction_read_only = off")
	var creat, unlink, length uint32
	err := ro.QueryRow(t.Context(), "select 'pg_catalog.lo_creat(int)'::regprocedure::oid, 'pg_catalog.lo_unlink(oid)'::regprocedure::oid, 'pg_catalog.int4abs(int)'::regprocedure::oid").Scan(&creat, &unlink, &length)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		function uint32
		state    string
	}{"lo_creat": {creat, noPrivilege}, "lo_unlink": {unlink, noPrivilege}, "int4abs": {length, ""}} {
		front := ro.PgConn().Frontend()
		front.Send(&pgproto3.FunctionCall{Function: c.function, ArgFormatCodes: []uint16{1}, Arguments: [][]byte{{0, 0, 0x12, 0x67}}, ResultFormatCode: 1})
		if err := front.Flush(); err != nil {
			t.Fatal(err)
		}
		state := ""
		for done := false; !done; {
			message, err := front.Receive()
			if err != nil {
				t.Fatal(err)
			}
			switch m := message.(type) {
			case *pgproto3.ErrorResponse:
				state = m.Code
			case *pgproto3.ReadyForQuery:
				done = true
			}
		}
		if state != c.state {
			t.Errorf("%s: SQLSTATE %q, want %q", name, state, c.state)
		}
	}
}

// Rotation covers both roles, and reverts what a role can do to itself: another
// password, and other settings.
func rotationCoversBothRoles(t *testing.T, d *postgrestest.Database) {
	oldOwner, oldReader := d.URL("app", d.Tenant.OwnerPassword), d.URL("app_readonly", d.Tenant.ReadOnlyPassword)
	allowed(t, d.Owner(t), "alter role app password 'stolen'")
	allowed(t, d.ReadOnly(t), "set default_transaction_read_only = off", "alter role app_readonly password 'stolen'",
		"alter role app_readonly set default_transaction_read_only = off", "alter role app_readonly set search_path = nowhere")
	stolen := model.NewSecret("stolen")
	for role, password := range map[string]model.Secret{"app": stolen, "app_readonly": stolen} {
		if err := tryConnect(t, d.URL(role, password)); err != nil {
			t.Fatalf("%s's own password shows nothing: %v", role, err)
		}
	}
	d.Tenant.OwnerPassword, d.Tenant.ReadOnlyPassword = model.NewSecret("owner-rotated"), model.NewSecret("reader-rotated")
	if err := postgres.SetPasswords(t.Context(), d.Superuser(t, "postgres"), d.Tenant); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{oldOwner, oldReader, d.URL("app", stolen), d.URL("app_readonly", stolen)} {
		if err := tryConnect(t, url); sqlState(err) != "28P01" {
			t.Errorf("an old password: %v", err)
		}
	}
	allowed(t, d.Owner(t), "create table rotated (n int)")
	ro := d.ReadOnly(t)
	refused(t, ro, readOnlyTransaction, []string{"insert into rotated values (1)"})
	allowed(t, ro, "table rotated")
}

func contains(states, state string) bool {
	return state != "" && slices.Contains(strings.Fields(states), state)
}
