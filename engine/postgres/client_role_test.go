package postgres_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"

	"github.com/jackc/pgx/v5"
)

// eachMajor runs a test on the version that all tests use and on the newest, in runs of everything also on those between. With
// HOLDFAST_TEST_MAJOR it is that one alone.
func eachMajor(t *testing.T, test func(*testing.T, *postgrestest.Database)) {
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		test(t, postgrestest.InstanceOf(t, bin, func(*postgres.Spec) {}))
	})
}

func eachBinaries(t *testing.T, test func(*testing.T, binaries.Set)) {
	t.Run("default", func(t *testing.T) { test(t, postgrestest.Binaries(t)) })
	for _, major := range postgrestest.OtherMajors(t) {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			if major != binaries.NewestRelease {
				testenv.All(t)
			}
			test(t, postgrestest.Major(t, major))
		})
	}
}

// What each access allows, of what was there before the role and what the owner makes later.
func TestClientRole(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		owner := d.Owner(t)
		makes(t, owner, "before")
		roles := map[model.RoleAccess]postgrestest.ClientRole{}
		for _, access := range model.RoleAccesses() {
			roles[access] = d.AddRole(t, access)
		}
		makes(t, owner, "later")
		for _, schema := range []string{"before", "later"} {
			for access, r := range roles {
				if access != model.AccessCreate {
					allowed(t, r.Connect(t), strings.Split(strings.ReplaceAll(read, "$", schema), "\n")...)
				}
			}
			writes := strings.Split(strings.ReplaceAll(`insert into $.t default values
insert into $.t values (7)
update $.t set n = 8 where n = 7
delete from $.t where n = 8
select nextval('$.seq')
select setval('$.seq', 9)
select pg_advisory_xact_lock(1)
select lo_unlink(lo_create(0))`, "$", schema), "\n")
			ddl := []string{"create table " + schema + ".mine (n int)", "alter table " + schema + ".mine add m int", "truncate " + schema + ".t", "create schema mine", "drop schema mine"}
			reads, writer, second := roles[model.AccessRead].Connect(t), roles[model.AccessWrite].Connect(t), roles[model.AccessOwner].Connect(t)
			refused(t, reads, readOnlyTransaction+noPrivilege, append(writes, ddl[0], ddl[3]))
			allowed(t, reads, "set default_transaction_read_only = off")
			refused(t, reads, noPrivilege, append(writes, ddl[0], ddl[3]))
			allowed(t, writer, writes...)
			refused(t, writer, noPrivilege, append(ddl[:1:1], "truncate "+schema+".t", "create schema mine", "create temp table mine (n int)", "alter table "+schema+".t add m int"))
			allowed(t, second, append(writes, ddl...)...)
		}
		writesNoOwnFunctions(t, d)
		// A member may drop what its group owns: that takes nothing from the group.
		allowed(t, roles[model.AccessWrite].Connect(t), "drop owned by holdfast_write")
		allowed(t, roles[model.AccessRead].Connect(t), "set default_transaction_read_only = off", "drop owned by holdfast_read")
		allowed(t, owner, "create table last (n int)")
		allowed(t, roles[model.AccessWrite].Connect(t), "insert into last values (1)", "insert into before.t values (70)")
		allowed(t, roles[model.AccessRead].Connect(t), "table last", "table before.t")
	})
}

// writesNoOwnFunctions checks that the owner's dump does not name PostgreSQL's own functions: only a superuser could
// restore privileges on these.
func writesNoOwnFunctions(t *testing.T, d *postgrestest.Database) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--dbname", ofPrograms(d.URL("app", d.Tenant.OwnerPassword))).Output()
	if err != nil || strings.Contains(string(out), "FUNCTION pg_catalog") {
		t.Errorf("the owner's dump names PostgreSQL's own functions: %v\n%s", err, out)
	}
}

// What a role with the owner's access makes belongs to the owner, also in a session that a pool hands on.
func TestClientRoleMakesTheOwnersObjects(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		second, reads := d.AddRole(t, model.AccessOwner), d.AddRole(t, model.AccessRead)
		conn := second.Connect(t)
		allowed(t, conn, "create table first (n int)", "discard all", "create table pooled (n int)")
		allowed(t, d.Owner(t), "alter table first add m int", "alter table pooled add m int")
		allowed(t, reads.Connect(t), "table first", "table pooled")
		var session string
		if err := conn.QueryRow(t.Context(), "select session_user").Scan(&session); err != nil || session != second.Name {
			t.Errorf("the session is %s's, %v", session, err)
		}
	})
}

// A dropped role leaves what it made to the owner, and no trace. Its sessions end.
func TestClientRoleDropped(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		owner := d.Owner(t)
		gone := d.AddRole(t, model.AccessOwner)
		conn := gone.Connect(t)
		allowed(t, conn, "set role none", "create schema its", "create table its.t (n int)", "select lo_create(4711)",
			"create function its.f() returns int language sql as 'select 1'", "alter default privileges grant select on tables to app_readonly")
		allowed(t, owner, "create table direct (n int)", "grant select on direct to "+gone.Name, "alter table direct enable row level security",
			"create policy p on direct to "+gone.Name+" using (true)", "alter default privileges grant insert on tables to "+gone.Name,
			"alter default privileges in schema public grant insert on tables to "+gone.Name)
		d.AddRole(t, model.AccessWrite) // of another group, whose default privileges come after these
		open := gone.Connect(t)
		dropRole(t, d, gone.Name)
		for _, c := range []*pgx.Conn{conn, open} {
			if _, err := c.Exec(t.Context(), "select 1"); sqlState(err) != "57P01" {
				t.Errorf("its session goes on: %v", err)
			}
		}
		if err := tryConnect(t, gone.URL()); sqlState(err) != "28P01" && sqlState(err) != "28000" {
			t.Errorf("it logs in: %v", err)
		}
		allowed(t, owner, "drop table its.t", "drop function its.f()", "drop schema its", "select lo_unlink(4711)", "create table after (n int)")
		var left int
		if err := d.Superuser(t, "app").QueryRow(t.Context(), "select count(*) from pg_default_acl a, aclexplode(defaclacl) where not exists (select from pg_roles where oid in (grantee, 0))").Scan(&left); err != nil || left > 0 {
			t.Errorf("%d default privileges name a role that is gone, %v", left, err)
		}
		out, err := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--dbname", ofPrograms(d.URL("app", d.Tenant.OwnerPassword))).CombinedOutput()
		if err != nil || strings.Contains(string(out), gone.Name) {
			t.Errorf("the dump: %v\n%s", err, out)
		}
	})
}

// What a role with few rights has made is the owner's to use, to take and to drop, though it belongs to a role that can do
// nothing. That one goes when it owns nothing any more. Others get nothing, and what two roles have left is kept apart.
func TestClientRoleHeir(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		owner, reads := d.Owner(t), d.AddRole(t, model.AccessRead)
		allowed(t, owner, "create schema shared", "create table parent (n int primary key)", "insert into parent values (1), (2)")
		for _, access := range []model.RoleAccess{model.AccessWrite, model.AccessCreate} {
			r := d.AddRole(t, access)
			allowed(t, owner, "grant usage, create on schema shared to "+r.Name, "grant usage on schema public to "+r.Name, "grant references on parent to "+r.Name)
			conn, its := r.Connect(t), "shared.by_"+string(access)
			allowed(t, conn, "set role none", "create table "+its+" (n int primary key)", "create table "+its+"_child (n int references parent on delete cascade, m int references "+its+")",
				"create sequence "+its+"_s", "grant select on "+its+" to public", "create view "+its+"_v as select * from "+its)
			dropRole(t, d, r.Name)
			allowed(t, owner, "insert into "+its+" values (7)", "insert into "+its+"_child values (1, 7), (2, 7)", "delete from parent where n = 1", "insert into parent values (1)",
				"select nextval('"+its+"_s')", "table "+its+"_v", "alter table "+its+" add m int", "create index on "+its+" (m)", "vacuum "+its)
			refused(t, reads.Connect(t), noPrivilege, []string{"table " + its, "table " + its + "_v"})
		}
		super := d.Superuser(t, "postgres")
		heirs, err := pgx.CollectRows(query(t, super, "select rolname::text from pg_roles where rolname ~ '^holdfast_left_[0-9]+$' order by oid"), pgx.RowTo[string])
		if err != nil || len(heirs) != 2 {
			t.Fatalf("heirs %q, %v", heirs, err)
		}
		if found := harm(t, d.Superuser(t, "app")); len(found) > 0 {
			t.Errorf("afterwards: %s", strings.Join(found, "; "))
		}
		for _, heir := range heirs {
			refused(t, owner, noPrivilege+" 0LP01", []string{
				"alter database app owner to " + heir, "grant " + heir + " to app_readonly", "alter role " + heir + " login", "drop role " + heir,
				"grant app to " + heir, "alter role " + heir + " rename to x",
			})
		}
		dump := exec.CommandContext(t.Context(), d.Spec.Bin.Tool("pg_dump"), "--no-owner", "--no-acl", "--dbname", ofPrograms(d.URL("app", d.Tenant.OwnerPassword)))
		if out, err := dump.CombinedOutput(); err != nil || !strings.Contains(string(out), "CREATE TABLE shared.by_write_child") || strings.Contains(string(out), "holdfast") {
			t.Errorf("the dump: %v\n%s", err, out)
		}
		allowed(t, owner, "alter default privileges grant select on tables to "+heirs[0], "grant select on parent to "+heirs[0], "reassign owned by "+heirs[0]+" to app",
			"drop owned by "+heirs[1]+" cascade", "table shared.by_write")
		provisioned(t, d)
		var left int
		if err := super.QueryRow(t.Context(), "select count(*) from pg_roles where rolname ~ '^holdfast_left'").Scan(&left); err != nil || left > 0 {
			t.Errorf("%d heirs are left, %v", left, err)
		}
		refused(t, owner, "42P01", []string{"table shared.by_create"})
		allowed(t, owner, "create table last (n int)")
	})
}

func query(t *testing.T, conn *pgx.Conn, text string) pgx.Rows {
	t.Helper()
	rows, err := conn.Query(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func dropRole(t *testing.T, d *postgrestest.Database, name string) {
	t.Helper()
	d.Tenant.Roles = slices.DeleteFunc(d.Tenant.Roles, func(r postgres.ClientRole) bool { return r.Name == name })
	super := d.Superuser(t, "postgres")
	if err := errors.Join(postgres.SetClientRoles(t.Context(), super, d.Tenant), postgres.FollowClientRoles(t.Context(), super, d.Tenant, name)); err != nil {
		t.Fatal(err)
	}
}

func setAccess(d *postgrestest.Database, name string, access model.RoleAccess) {
	for i := range d.Tenant.Roles {
		if d.Tenant.Roles[i].Name == name {
			d.Tenant.Roles[i].Access = access
		}
	}
}

// A role that loses access keeps nothing of it: neither what it owns, nor what it has granted itself.
func TestClientRoleLosesAccess(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		r := d.AddRole(t, model.AccessOwner)
		conn := r.Connect(t)
		allowed(t, conn, "create table kept (n int)", "grant all on kept to "+r.Name, "grant create on schema public to "+r.Name,
			"set role none", "create table its (n int)", "alter role "+r.Name+" set search_path = nowhere")
		setAccess(d, r.Name, model.AccessRead)
		provisioned(t, d)
		if _, err := conn.Exec(t.Context(), "select 1"); sqlState(err) != "57P01" {
			t.Errorf("its session goes on: %v", err)
		}
		conn = r.Connect(t)
		allowed(t, conn, "table kept", "set default_transaction_read_only = off")
		refused(t, conn, noPrivilege, []string{"table its", "insert into kept values (1)", "drop table its", "create table more (n int)", "set role app"})
		setAccess(d, r.Name, model.AccessWrite)
		provisioned(t, d)
		allowed(t, r.Connect(t), "insert into kept values (1)")
		setAccess(d, r.Name, model.AccessOwner)
		provisioned(t, d)
		allowed(t, r.Connect(t), "drop table kept, its")
	})
}

// Policies of row-level security name roles. They stay when a role loses access, and what was granted to it too.
func TestClientRoleOfPolicies(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	r := d.AddRole(t, model.AccessOwner)
	allowed(t, d.Owner(t), "create table t (n int)", "insert into t values (1), (2)", "alter table t enable row level security",
		"create policy p on t to "+r.Name+" using (n = 1)")
	setAccess(d, r.Name, model.AccessWrite)
	provisioned(t, d)
	var n int
	if err := r.Connect(t).QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != 1 {
		t.Errorf("it sees %d rows, %v", n, err)
	}
}

// Privileges that the owner has revoked stay revoked, whatever roles are made later.
func TestClientRoleRevoked(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	owner, r := d.Owner(t), d.AddRole(t, model.AccessWrite)
	allowed(t, owner, "create table open (n int)", "create table closed (n int)", "revoke all on closed from holdfast_write")
	provisioned(t, d)
	allowed(t, r.Connect(t), "insert into open values (1)", "set role none")
	refused(t, r.Connect(t), noPrivilege, []string{"insert into closed values (1)"})
}

// PrepareAccess waits for transactions that have changed tables, and not for long; what they made is covered.
func TestPrepareAccess(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"create table hidden (n int)", "alter table old add m int", "alter default privileges grant select on tables to public", "insert into old values (1)"} {
		t.Run(open, func(t *testing.T) {
			t.Parallel()
			d := postgrestest.Instance(t)
			super, owner := d.Superuser(t, "postgres"), d.Owner(t)
			allowed(t, owner, "create table old (n int)", "begin", open)
			tenant := d.Tenant
			tenant.Roles = []postgres.ClientRole{{Name: "w", Access: model.AccessWrite}}
			began := time.Now()
			err := postgres.PrepareAccess(within(t, 30*time.Second), super, tenant)
			if blocks := !strings.HasPrefix(open, "insert"); errors.Is(err, postgres.ErrLocked) != blocks || !blocks && err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			allowed(t, owner, "commit")
			r := d.AddRole(t, model.AccessWrite)
			statements := []string{"insert into old (n) values (1)"}
			if strings.Contains(open, "hidden") {
				statements = append(statements, "insert into hidden values (1)")
			}
			allowed(t, r.Connect(t), statements...)
		})
	}
	t.Run("while they go on", func(t *testing.T) {
		t.Parallel()
		d := postgrestest.Instance(t)
		owner := d.Owner(t)
		allowed(t, owner, "create table old (n int)", "begin", "create table hidden (n int)", "alter table old add m int")
		time.AfterFunc(time.Second, func() { _, _ = owner.Exec(t.Context(), "commit") })
		allowed(t, d.AddRole(t, model.AccessWrite).Connect(t), "insert into hidden values (1)", "insert into old (n) values (1)")
	})
}

// Where others hold locks on what a role owns, it stays closed and is dropped the next time.
func TestClientRoleDroppedBesideLocks(t *testing.T) {
	t.Parallel()
	d := postgrestest.Instance(t)
	r := d.AddRole(t, model.AccessOwner)
	conn := r.Connect(t)
	allowed(t, conn, "set role none", "create table its (n int)", "grant all on its to app")
	other := d.Owner(t)
	allowed(t, other, "begin", "insert into its values (1)")
	d.Tenant.Roles = nil
	super := d.Superuser(t, "postgres")
	if err := postgres.SetClientRoles(t.Context(), super, d.Tenant); err != nil {
		t.Fatal(err)
	}
	if err := postgres.FollowClientRoles(t.Context(), super, d.Tenant, r.Name); !errors.Is(err, postgres.ErrLocked) {
		t.Fatal(err)
	}
	if err := tryConnect(t, r.URL()); err == nil {
		t.Error("it logs in")
	}
	if _, err := conn.Exec(t.Context(), "select 1"); sqlState(err) != "57P01" {
		t.Errorf("its session goes on: %v", err)
	}
	allowed(t, other, "commit")
	provisioned(t, d)
	allowed(t, d.Owner(t), "drop table its")
	var left int
	if err := super.QueryRow(t.Context(), "select count(*) from pg_roles where rolname = $1", r.Name).Scan(&left); err != nil || left > 0 {
		t.Errorf("%d roles are left, %v", left, err)
	}
}

// A role's limit counts within that of the server.
func TestClientRoleConnections(t *testing.T) {
	t.Parallel()
	d := postgrestest.InstanceWith(t, func(s *postgres.Spec) {
		s.Config.Settings = map[string]string{"max_connections": "20"}
		s.Config.Logins = 30
	})
	d.Tenant.Connections = d.Spec.Config.Sessions(d.Spec.Bin)
	r := d.AddRole(t, model.AccessWrite)
	for limit, want := range map[int]int{0: 15, 3: 3, 100: 15} {
		d.Tenant.Roles[0].Connections = limit
		provisioned(t, d)
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			if n := openUntilRefused(t, r.URL()); n != want {
				t.Errorf("%d sessions with the limit %d", n, limit)
			}
		})
	}
}
