package postgres_test

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
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

// writersMay matches those of readOnlyAttacks that change rows, and what the same privileges allow.
var writersMay = regexp.MustCompile(`(?i)^(\[[^\]]*\] )?(insert into \w+\.(t|v|parts|part1)\b|merge into|update \w+\.(t|v) |delete from \w+\.(t|v)$|with w as|` +
	`select \* from \w+\.t for |copy \w+\.t from stdin|select (pg_catalog\.)?(nextval|setval|currval)|select lo_(create|creat|from_bytea)\(|` +
	`select pg_logical_emit_message|deallocate all; prepare|explain analyze insert|declare c|do 'begin (set local transaction read write; )?insert|call |select \w+\.plain_|` +
	`lock table|select table_to_xml|\[0A000\] select (query_to_xml|ts_stat))`)

// A role that writes changes rows, and nothing else.
func TestClientRoleAttacks(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		owner, super := d.Owner(t), d.Superuser(t, "app")
		allowed(t, owner, objects("before", "4711")...)
		r := d.AddRole(t, model.AccessWrite)
		allowed(t, owner, objects("later", "4712")...)
		for schema, largeObject := range map[string]string{"before": "4711", "later": "4712"} {
			conn := r.Connect(t)
			attacks := append(readOnlyAttacks(schema, largeObject, r.Name), "[warning] drop owned by holdfast_write", "grant holdfast_write to app", "grant app to holdfast_write",
				"alter role holdfast_write login", "drop role holdfast_write", "comment on role holdfast_write is null", "comment on role "+r.Name+" is 'holdfast: role with access owner'",
				"select lo_put(4711, 0, 'x')", "truncate "+schema+".t")
			for _, attack := range attacks {
				if !writersMay.MatchString(attack) {
					readOnlyAttack(t, conn, attack, noPrivilege)
				}
			}
			if found := harm(t, super); len(found) > 0 {
				t.Errorf("afterwards: %s", strings.Join(found, "; "))
			}
			allowed(t, conn, "insert into "+schema+".t (n, m) values (1000, 5)")
		}
	})
}

// Roles see and reach nothing of each other, except that the owner's access is that of the owner.
func TestClientRolesAmongThemselves(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		roles := map[string]postgrestest.ClientRole{}
		for _, access := range model.RoleAccesses() {
			r := d.AddRole(t, access)
			roles[r.Name] = r
		}
		d.Tenant.Roles = append(d.Tenant.Roles, postgres.ClientRole{Name: "another", Access: model.AccessRead, Verifier: d.Tenant.Roles[0].Verifier})
		provisioned(t, d)
		for name, r := range roles {
			for other, o := range roles {
				if name == other {
					continue
				}
				conn, victim := r.Connect(t), o.Connect(t)
				allowed(t, victim, "select 'a secret'")
				var pid, seen int
				if err := victim.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
					t.Fatal(err)
				}
				allowed(t, victim, "select 'a secret'")
				if err := conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where pid = $1 and query like '%a secret%'", pid).Scan(&seen); err != nil || seen > 0 {
					t.Errorf("%s sees a statement of %s, %v", name, other, err)
				}
				allowed(t, conn, "set default_transaction_read_only = off")
				for _, attack := range []string{
					"set role " + other, "set session authorization " + other, "alter role " + other + " password 'x'", "alter role " + other + " set work_mem = '1MB'",
					"drop role " + other, "grant " + other + " to " + name, "grant " + name + " to " + other, "alter role " + other + " rename to x",
					"select pg_terminate_backend(pid) from pg_stat_activity where usename = '" + other + "'", "drop owned by " + other,
					"reassign owned by " + other + " to " + name, "alter role " + name + " connection limit 100", "alter role " + name + " createrole", "create role x",
					"set role another", "drop role another", "grant another to " + name,
				} {
					if err := attempt(t, conn, attack); sqlState(err) != noPrivilege {
						t.Errorf("%s: %s: %v", name, attack, err)
					}
				}
				_, _ = conn.Close(t.Context()), victim.Close(t.Context()) // there are not enough for all
			}
			if name != "client_owner" {
				for _, attack := range []string{
					"set role app", "set role app_readonly", "grant app to " + name, "alter role app password 'x'", "set role holdfast",
					"select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'",
				} {
					d.Owner(t)
					conn := r.Connect(t)
					allowed(t, conn, "set default_transaction_read_only = off")
					if err := attempt(t, conn, attack); sqlState(err) != noPrivilege {
						t.Errorf("%s: %s: %v", name, attack, err)
					}
				}
			}
		}
	})
}

// From PostgreSQL 16 on, no role becomes its group, so nothing is made that belongs to a group.
func TestClientRoleIsNotItsGroup(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		if d.Spec.Bin.Major < 16 {
			return
		}
		for _, access := range []model.RoleAccess{model.AccessRead, model.AccessWrite} {
			refused(t, d.AddRole(t, access).Connect(t), noPrivilege, []string{"set role holdfast_" + string(access)})
		}
	})
}

// A login as a role reaches one database, over TCP, with its password.
func TestClientRoleNeighbours(t *testing.T) {
	t.Parallel()
	eachMajor(t, func(t *testing.T, d *postgrestest.Database) {
		neighbour := postgrestest.InstanceOf(t, d.Spec.Bin, func(*postgres.Spec) {})
		for _, access := range model.RoleAccesses() {
			r := d.AddRole(t, access)
			neighbour.AddRole(t, access)
			none := model.NewSecret("x")
			inPostgres := "28000"
			if access == model.AccessCreate { // see TestCreatorAttacks
				inPostgres = ""
			}
			for _, a := range []loginAttack{
				{"the control", d, r.Name, r.Password, "app", nil, ""},
				{"neighbour", neighbour, r.Name, r.Password, "app", nil, "28P01"},
				{"without its password", d, r.Name, none, "app", nil, "28P01"},
				{"for the owner", d, "app", r.Password, "app", nil, "28P01"},
				{"for the reader", d, "app_readonly", r.Password, "app", nil, "28P01"},
				{"the owner's password", d, r.Name, d.Tenant.OwnerPassword, "app", nil, "28P01"},
				{"as its group", d, "holdfast_" + string(access), r.Password, "app", nil, "28000"},
				{"database postgres", d, r.Name, r.Password, "postgres", nil, inPostgres},
				{"database template1", d, r.Name, r.Password, "template1", nil, "28000"},
				{"group", d, "+" + r.Name, r.Password, "app", nil, "28000"},
				{"list", d, r.Name + ",holdfast", r.Password, "app", nil, "28000"},
				{"the superuser", d, "holdfast", r.Password, "app", nil, "28000"},
				{"replication", d, r.Name, r.Password, "app", map[string]string{"replication": "true"}, "53300"},
				{"logical replication", d, r.Name, r.Password, "app", map[string]string{"replication": "database"}, "53300"},
				{"role", d, r.Name, r.Password, "app", map[string]string{"role": "holdfast"}, "42501 22023"},
				{"session authorization", d, r.Name, r.Password, "app", map[string]string{"options": "-c session_authorization=holdfast"}, "42501 22023 42704"},
				{"library", d, r.Name, r.Password, "app", map[string]string{"session_preload_libraries": "x"}, "42501"},
				{"system tables", d, r.Name, r.Password, "app", map[string]string{"allow_system_table_mods": "on"}, "42501"},
			} {
				t.Run(r.Name+" "+a.name, a.run)
			}
			config, err := pgx.ParseConfig(r.URL())
			if err != nil {
				t.Fatal(err)
			}
			config.Host, config.TLSConfig, config.Fallbacks = d.SocketDir(t), nil, nil
			if _, err := pgx.ConnectConfig(t.Context(), config); sqlState(err) != "28000" {
				t.Errorf("%s on the private socket: %v", r.Name, err)
			}
		}
	})
}

// A client with an old password of a role keeps no access: neither by an open transaction that has changed the role, nor
// by a setting or a password of its own, nor by a login that is not complete.
func TestClientRoleRotation(t *testing.T) {
	t.Parallel()
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		for _, access := range model.RoleAccesses() {
			t.Run(string(access), func(t *testing.T) {
				t.Parallel()
				d := postgrestest.InstanceOf(t, bin, func(*postgres.Spec) {})
				r, super := d.AddRole(t, access), d.Superuser(t, "postgres")
				conn := r.Connect(t)
				allowed(t, conn, "set role none", "begin read write", "alter role "+r.Name+" set local_preload_libraries = 'absent'", "alter role "+r.Name+" password 'mine'", "commit",
					"begin read write", "alter role "+r.Name+" set work_mem = '8MB'")
				late, before := newLateClient(false), processesBelow(t, filepath.Dir(d.Spec.Dir))
				config, err := pgx.ParseConfig(r.URL())
				if err != nil {
					t.Fatal(err)
				}
				config.Password = "mine"
				config.DialFunc, config.TLSConfig, config.Fallbacks = late.dial, nil, nil
				got := make(chan error, 1)
				go func() {
					conn, err := pgx.ConnectConfig(t.Context(), config)
					if err == nil {
						_ = conn.Close(context.WithoutCancel(t.Context()))
					}
					got <- err
				}()
				<-late.waits
				testenv.Within(t, 30*time.Second, "its process", func() bool { return anotherProcess(t, d, before) })
				next := model.NewSecret("another-one-which-is-long")
				if d.Tenant.Roles[0].Verifier, err = postgres.NewVerifier(next); err != nil {
					t.Fatal(err)
				}
				if err := postgres.SetClientRoles(within(t, 5*time.Second), super, d.Tenant); err != nil {
					t.Fatal(err)
				}
				if _, err := postgres.TerminateRole(within(t, 20*time.Second), super, r.Name); err != nil {
					t.Fatal(err)
				}
				close(late.goes)
				if err := <-got; err == nil {
					t.Error("the login went on")
				}
				if _, err := conn.Exec(t.Context(), "select 1"); sqlState(err) != "57P01" && !conn.IsClosed() {
					t.Errorf("its session goes on: %v", err)
				}
				for _, old := range []model.Secret{r.Password, model.NewSecret("mine")} {
					if err := tryConnect(t, d.URL(r.Name, old)); sqlState(err) != "28P01" {
						t.Errorf("an old password: %v", err)
					}
				}
				if err := tryConnect(t, d.URL(r.Name, next)); err != nil {
					t.Errorf("the new password: %v", err)
				}
			})
		}
	})
}

// What a role with few rights has made gives nobody the owner's rights once the role is gone or has another access: what others
// may use acts without any rights, and so does code that runs without anyone's privilege to execute it, in an index
// and in a trigger.
func TestClientRoleLeavesNoTrap(t *testing.T) {
	t.Parallel()
	eachBinaries(t, func(t *testing.T, bin binaries.Set) {
		for name, end := range map[string]struct {
			access model.RoleAccess
			of     func(*testing.T, *postgrestest.Database, string)
		}{
			"deleted": {model.AccessWrite, dropRole},
			"restored": {model.AccessRead, func(t *testing.T, d *postgrestest.Database, role string) {
				d.Tenant.Roles = slices.DeleteFunc(d.Tenant.Roles, func(r postgres.ClientRole) bool { return r.Name == role })
				provisioned(t, d)
			}},
			"changed": {model.AccessCreate, func(t *testing.T, d *postgrestest.Database, role string) {
				setAccess(d, role, model.AccessWrite)
				provisioned(t, d)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				leavesNoTrap(t, postgrestest.InstanceOf(t, bin, func(*postgres.Spec) {}), end.access, end.of)
			})
		}
	})
}

func leavesNoTrap(t *testing.T, d *postgrestest.Database, access model.RoleAccess, end func(*testing.T, *postgrestest.Database, string)) {
	t.Helper()
	owner, r, other := d.Owner(t), d.AddRole(t, access), d.AddNamedRole(t, "other", model.AccessRead)
	d.AddNamedRole(t, "another", model.AccessWrite) // so that there are both groups
	allowed(t, owner, "create table payroll as select 1 as n", "revoke all on payroll from holdfast_read, holdfast_write, app_readonly",
		"create schema shared", "grant usage, create on schema shared to public")
	allowed(t, r.Connect(t), "set role none", "set default_transaction_read_only = off", "create view shared.v as select * from payroll", "create table shared.t (n int)",
		"create rule r as on insert to shared.t do also update payroll set n = 7",
		"create function shared.f() returns bigint security definer language plpgsql as 'begin return (select sum(n) from payroll); end'",
		"create function shared.fires() returns trigger security definer language plpgsql as 'begin new.n := (select sum(n) from public.payroll); return new; end'",
		"create function shared.grants() returns int language plpgsql as 'begin begin grant all on public.payroll to other; exception when others then null; end; return 1; end'",
		"create function shared.indexed(int) returns int immutable language plpgsql as 'begin return shared.grants(); end'",
		"create table shared.notes (n int)", "create index on shared.notes (shared.indexed(n))", "insert into shared.notes values (1), (2)",
		"grant all on all tables in schema shared to public", "grant execute on function shared.f() to other", "grant select (n) on shared.v to other")
	conn := other.Connect(t)
	allowed(t, conn, "set default_transaction_read_only = off", "create table shared.own (n bigint)",
		"create trigger fires before insert on shared.own for each row execute function shared.fires()")
	attacks := []string{"table shared.v", "select n from shared.v", "select shared.f()", "insert into shared.t values (1)", "insert into shared.own values (1) returning n"}
	refused(t, conn, noPrivilege, attacks) // with few rights it lends few
	end(t, d, r.Name)
	refused(t, conn, noPrivilege, attacks)
	allowed(t, owner, "analyze shared.notes", "reindex table shared.notes")
	allowed(t, d.Superuser(t, "app"), "analyze shared.notes", "vacuum full shared.notes")
	refused(t, conn, noPrivilege, append(attacks, "table payroll", "insert into payroll values (1)"))
	allowed(t, owner, "table shared.notes", "drop view shared.v", "drop table shared.t, shared.notes", "drop function shared.f()", "drop function shared.fires() cascade")
}
