package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// role makes a role and returns how to connect as it.
func (a *appliance) role(t testing.TB, database, name string, access model.RoleAccess) databases.Connection {
	t.Helper()
	made, err := a.Databases.RoleCreate(t.Context(), a.call(model.ActionDatabaseRoleCreate), database, databases.NewRole{Name: name, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	c := made.Connection
	if access == model.AccessCreate {
		c = a.inTenants(t, database, c)
		run(t, c, "drop database "+made.Connection.Database)
	}
	return c
}

// inTenants returns how a role that creates databases connects to the tenant's.
func (a *appliance) inTenants(t testing.TB, database string, c databases.Connection) databases.Connection {
	t.Helper()
	record, err := a.Databases.Record(database)
	if err != nil {
		t.Fatal(err)
	}
	return beside(c, record.Name)
}

func (a *appliance) deleteRole(t testing.TB, database, name string) {
	t.Helper()
	if _, err := a.Databases.RoleDelete(t.Context(), a.call(model.ActionDatabaseRoleDelete), database, name); err != nil {
		t.Fatal(err)
	}
}

// noLogin checks that nobody can log in.
func noLogin(t testing.TB, c databases.Connection) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err == nil {
		conn.Close(t.Context())
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "28P01" && pg.Code != "28000" {
		t.Errorf("%s: %v", c.User, err)
	}
}

// serverRoles lists the roles of a database's server that clients made.
func serverRoles(t testing.TB, c databases.Connection) string {
	t.Helper()
	return answer[string](t, c, `select coalesce(string_agg(rolname, ' ' order by rolname), '') from pg_roles
		where rolname !~ '^(pg_|holdfast)' and rolname not in ('app', 'app_readonly')`)
}

// isEnded reports whether the server has ended a session.
func isEnded(t testing.TB, conn *pgx.Conn) bool {
	_, err := conn.Exec(t.Context(), "select 1")
	return err != nil
}

func mustBeEnded(t testing.TB, conn *pgx.Conn) {
	t.Helper()
	if !isEnded(t, conn) {
		t.Error("its session goes on")
	}
}

// sealVerifier stores a password in the record of a role.
func (e *Engine) sealVerifier(t testing.TB, d *model.Database, role *model.DatabaseRole, password string) {
	t.Helper()
	verifier, err := postgres.NewVerifier(model.NewSecret(password))
	if err != nil {
		t.Fatal(err)
	}
	role.Verifier = e.Core.Sealer.Seal("verifier "+d.ID+" "+role.Name, verifier)
}

// A role logs in with the password that its creation shows, may do what its access says, and its sessions end when it
// has less, another password, or is deleted.
func TestDatabaseRole(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, owner := a.createDatabase(t, "shop")
	run(t, owner, "create table kept (n int)")
	c := a.role(t, db.ID, "worker", model.AccessWrite)
	run(t, c, "insert into kept values (1)")
	t.Run("the owner's rotation", func(t *testing.T) {
		session := connect(t, c)
		if _, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false); err != nil {
			t.Fatal(err)
		}
		owner = a.connectionOf(t, db.ID)
		if err := session.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		run(t, c, "insert into kept values (2)")
	})
	t.Run("rotate", func(t *testing.T) {
		session := connect(t, c)
		rotated, err := a.Databases.RoleRotatePassword(t.Context(), a.call(model.ActionDatabaseRoleRotate), db.ID, "worker")
		if err != nil || rotated.SessionsTerminated != 1 {
			t.Fatalf("%d sessions ended, %v", rotated.SessionsTerminated, err)
		}
		mustBeEnded(t, session)
		noLogin(t, c)
		c = rotated.Connection
		run(t, c, "insert into kept values (3)")
	})
	t.Run("less access", func(t *testing.T) {
		session := connect(t, c)
		if _, err := a.Databases.RoleUpdate(t.Context(), a.call(model.ActionDatabaseRoleUpdate), db.ID, "worker", databases.RoleChange{Access: new(model.AccessRead)}); err != nil {
			t.Fatal(err)
		}
		mustBeEnded(t, session)
		if n := answer[int](t, c, "select count(*) from kept"); n != 3 {
			t.Errorf("it reads %d rows", n)
		}
		if _, err := connect(t, c).Exec(t.Context(), "begin read write; insert into kept values (4)"); err == nil {
			t.Error("it writes")
		}
	})
	t.Run("a password of its own", func(t *testing.T) {
		run(t, c, "begin read write; alter role worker password 'mine'; commit")
		connectionDetails(t, a, db.ID)
		noLogin(t, withPassword(c, "mine"))
		run(t, c, "select 1")
	})
	t.Run("delete", func(t *testing.T) {
		session := connect(t, c)
		a.deleteRole(t, db.ID, "worker")
		mustBeEnded(t, session)
		noLogin(t, c)
		if got := serverRoles(t, owner); got != "" {
			t.Errorf("the server has %s", got)
		}
	})
}

func withPassword(c databases.Connection, password string) databases.Connection {
	c.Password = model.NewSecret(password)
	return c
}

// At most so many roles, of names of their own.
func TestDatabaseRoleRefused(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, owner := a.createDatabase(t, "shop")
	create := func(name string) error {
		_, err := a.Databases.RoleCreate(t.Context(), a.call(model.ActionDatabaseRoleCreate), db.ID, databases.NewRole{Name: name, Access: model.AccessRead})
		return err
	}
	for n := range model.MaxDatabaseRoles {
		if err := create(fmt.Sprint("r", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := create("one_too_many"); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("one too many: %v", err)
	}
	a.deleteRole(t, db.ID, "r7")
	for _, name := range []string{"app", "app_readonly", "app_replication", "r1", "holdfast", "holdfast_read", "pg_x", "postgres", "none"} {
		if err := create(name); model.CodeOf(err) != model.CodeConflict && model.CodeOf(err) != model.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The first of an access needs privileges on tables that an open transaction has changed.
	conn := connect(t, owner)
	if _, err := conn.Exec(t.Context(), "create table t (n int); begin; alter table t add m int"); err != nil {
		t.Fatal(err)
	}
	_, err := a.Databases.RoleCreate(t.Context(), a.call(model.ActionDatabaseRoleCreate), db.ID, databases.NewRole{Name: "w", Access: model.AccessWrite})
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "nothing was changed") {
		t.Errorf("beside an open transaction: %v", err)
	}
	if _, found := a.record(t, db.ID).Role("w"); found {
		t.Error("the role is recorded")
	}
	if _, err := conn.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	a.role(t, db.ID, "w", model.AccessWrite)
}

// A restore, in place or of the other data, brings back data, not roles: they are as the record says.
func TestDatabaseRolesSurviveRestores(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, owner := a.createDatabase(t, "shop")
	run(t, owner, "create table kept (n int)")
	gone := a.role(t, db.ID, "gone", model.AccessOwner)
	run(t, gone, "set role none; create table its (n int)")
	backup := a.backUp(t, db.ID)
	a.deleteRole(t, db.ID, "gone")
	later := a.role(t, db.ID, "later", model.AccessWrite)
	check := func(t *testing.T) {
		t.Helper()
		run(t, later, "insert into kept values (1)")
		noLogin(t, gone)
		if got := serverRoles(t, owner); got != "later" {
			t.Errorf("the server has %q", got)
		}
		run(t, owner, "alter table its add column if not exists m int")
	}
	check(t)
	a.restore(t, db.ID, backup.ID)
	check(t)
	a.undo(t, db.ID)
	check(t)
	name := "copy"
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, backup.ID, &name)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.wantCopiedRole(t, op.NewDatabase, later)
}

// wantCopiedRole checks that a copy has the role of its original, but no password of it until it is given one.
func (a *appliance) wantCopiedRole(t *testing.T, id string, original databases.Connection) {
	t.Helper()
	roles, err := a.Databases.RoleList(a.call(model.ActionDatabaseRoleList), id)
	if err != nil || len(roles) != 1 || roles[0].Name != original.User || roles[0].PasswordSetAt != nil {
		t.Fatalf("the copy has %+v, %v", roles, err)
	}
	in := a.connectionOf(t, id)
	in.User, in.Password = original.User, original.Password
	noLogin(t, in)
	rotated, err := a.Databases.RoleRotatePassword(t.Context(), a.call(model.ActionDatabaseRoleRotate), id, original.User)
	if err != nil {
		t.Fatal(err)
	}
	run(t, rotated.Connection, "insert into kept values (2)")
}

// A branch has the roles of its parent.
func TestDatabaseRolesOfBranches(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]func(*Engine){"clone": cloning, "restore": neverCloning} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngineOn(t, testConfig(t, newDataDir(t)), method)
			db, owner := a.createDatabase(t, "shop")
			run(t, owner, "create table kept (n int)")
			c := a.role(t, db.ID, "worker", model.AccessWrite)
			a.backUp(t, db.ID)
			made, _ := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
			a.wantCopiedRole(t, made.ID, c)
			run(t, c, "insert into kept values (1)")
		})
	}
}

// An upgrade keeps the roles, what they may do, and their passwords.
func TestDatabaseRolesSurviveUpgrades(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, verifying(t))
	db, owner := a.onMajor(t, "shop", "15")
	run(t, owner, "create table kept (n int)")
	roles := map[model.RoleAccess]databases.Connection{}
	for _, access := range model.RoleAccesses() {
		roles[access] = a.role(t, db.ID, "client_"+string(access), access)
	}
	creates := roles[model.AccessCreate]
	testsIn(t, creates, "tests")
	run(t, beside(creates, "tests"), "set role none; create schema own; alter database tests set default_transaction_read_only = on")
	run(t, creates, "create database closed")
	run(t, creates, "alter database tests connection limit 10; alter database closed allow_connections false")
	a.upgraded(t, db.ID, "18", false, model.OperationCompleted)
	if got := answerMajor(t, owner); got != 18 {
		t.Fatalf("it runs on %d", got)
	}
	run(t, roles[model.AccessOwner], "create table made (n int)")
	run(t, roles[model.AccessWrite], "insert into made values (1); select pg_advisory_xact_lock(1)")
	if n := answer[int](t, roles[model.AccessRead], "select n from made"); n != 1 {
		t.Errorf("it reads %d", n)
	}
	wantTests(t, beside(creates, "tests"))
	run(t, beside(creates, "tests"), "begin read write; select lo_create(0); commit")
	run(t, creates, "drop database closed")
	a.deleteRole(t, db.ID, "client_owner")
	run(t, owner, "drop table made")
	a.undo(t, db.ID)
	if got := serverRoles(t, owner); got != "client_create client_read client_write" {
		t.Errorf("after an undo the server has %q", got)
	}
}

// A client that logs in as a role wakes a database that sleeps, and none does as one that is gone.
func TestDatabaseRoleWakes(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	gone := a.role(t, db.ID, "gone", model.AccessRead)
	a.letSleep(t, db.ID, 10*time.Second)
	a.sleepSoon(t, db.ID)
	conn := connect(t, gone)
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.sleepSoon(t, db.ID)
	c := a.role(t, db.ID, "later", model.AccessRead) // which wakes it too
	a.deleteRole(t, db.ID, "gone")
	a.sleepSoon(t, db.ID)
	// With TLS the name is not known until the server runs.
	if _, err := pgx.Connect(t.Context(), gone.URL()+"?sslmode=disable"); err == nil || !a.Databases.IsAsleep(db.ID) {
		t.Errorf("one that is gone: %v, asleep %v", err, a.Databases.IsAsleep(db.ID))
	}
	connect(t, c)
}

// The allow-list and TLS hold for roles too.
func TestDatabaseRoleOutsideTheAllowlist(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "worker", model.AccessOwner)
	session := connect(t, c)
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"10.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	mustBeEnded(t, session)
	refused(t, c)
}

// The database that was made for a role goes with it if nobody has used it. Any other database beside the tenant's stays.
func TestDatabaseOfDeletedRole(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, owner := a.createDatabase(t, "shop")
	other := a.role(t, db.ID, "other", model.AccessCreate)
	create := func(t *testing.T, name string) databases.Connection {
		t.Helper()
		made, err := a.Databases.RoleCreate(t.Context(), a.call(model.ActionDatabaseRoleCreate), db.ID, databases.NewRole{Name: name, Access: model.AccessCreate})
		if err != nil {
			t.Fatal(err)
		}
		return made.Connection
	}
	for name, test := range map[string]struct {
		role, database string
		use            func(*testing.T, databases.Connection)
		dropped        bool
	}{
		"empty": {"tests", "tests", func(t *testing.T, c databases.Connection) {
			run(t, c, "create table t (n int)")
			run(t, c, "drop table t")
		}, true},
		"another name": {"shop", "shop_tests", func(*testing.T, databases.Connection) {}, true},
		"its session":  {"tests", "tests", func(t *testing.T, c databases.Connection) { connect(t, c) }, true},
		"closed": {"tests", "tests", func(t *testing.T, c databases.Connection) {
			run(t, other, "alter database tests allow_connections false")
		}, true},
		"a table":        {"tests", "tests", func(t *testing.T, c databases.Connection) { run(t, c, "create table t (n int)") }, false},
		"a large object": {"tests", "tests", func(t *testing.T, c databases.Connection) { run(t, c, "select lo_create(0)") }, false},
		"a function": {"tests", "tests", func(t *testing.T, c databases.Connection) {
			run(t, c, "create function f() returns int language sql as 'select 1'")
		}, false},
		"an extension": {"tests", "tests", func(t *testing.T, c databases.Connection) { run(t, c, "create extension hstore") }, false},
		"a table, and closed by an appliance that died": {"tests", "tests", func(t *testing.T, c databases.Connection) {
			run(t, c, "create table t (n int)")
			run(t, other, "alter database tests allow_connections false")
		}, false},
		"a grant":    {"tests", "tests", func(t *testing.T, c databases.Connection) { run(t, c, "grant usage on schema public to tests") }, true},
		"a template": {"tests", "tests", func(t *testing.T, c databases.Connection) { run(t, other, "alter database tests is_template true") }, false},
		"another's session": {"tests", "tests", func(t *testing.T, _ databases.Connection) {
			connect(t, beside(other, "tests"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.use(t, create(t, test.role))
			done, err := a.Databases.RoleDelete(t.Context(), a.call(model.ActionDatabaseRoleDelete), db.ID, test.role)
			if err != nil {
				t.Fatal(err)
			}
			if test.dropped != (done.Dropped == test.database) || test.dropped == (done.Kept == test.database) {
				t.Errorf("%+v", done)
			}
			if left := slices.Contains(besides(t, owner), test.database); left == test.dropped {
				t.Errorf("it is left: %v", left)
			}
			if !test.dropped {
				run(t, beside(other, "tests"), "select 1") // it is open
				dropForced(t, other, "tests")
			}
		})
	}
	t.Run("another role's too", func(t *testing.T) {
		create(t, "shop")
		c := create(t, "shop_tests") // its database has the name that shop's has
		a.deleteRole(t, db.ID, "shop")
		run(t, c, "select 1")
		a.deleteRole(t, db.ID, "shop_tests")
		if left := besides(t, owner); slices.Contains(left, "shop_tests") {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("a lock", func(t *testing.T) {
		create(t, "tests")
		conn := connect(t, other)
		if _, err := conn.Exec(t.Context(), "begin; comment on database tests is 'mine'"); err != nil {
			t.Fatal(err)
		}
		a.deleteRole(t, db.ID, "tests")
		if _, err := conn.Exec(t.Context(), "commit"); err != nil {
			t.Errorf("the transaction: %v", err)
		}
		run(t, beside(other, "tests"), "select 1")
		dropForced(t, other, "tests")
	})
	t.Run("logins in the middle", func(t *testing.T) {
		create(t, "tests")
		config, err := pgx.ParseConfig(beside(other, "tests").URL())
		if err != nil {
			t.Fatal(err)
		}
		config.RuntimeParams["options"] = "-c post_auth_delay=3" // seconds between the check whether it is open and the session
		var made sync.Map
		var logins sync.WaitGroup
		begin := func(n int) {
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				return // it is closed, or gone
			}
			if _, err := conn.Exec(t.Context(), fmt.Sprintf("create table t%d (n int)", n)); err == nil {
				made.Store(n, nil)
			}
			_ = conn.Close(context.WithoutCancel(t.Context()))
		}
		deleted := make(chan struct{})
		logins.Go(func() {
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ticker.C:
					logins.Go(func() { begin(n) })
				case <-deleted:
					return
				}
			}
		})
		a.deleteRole(t, db.ID, "tests")
		close(deleted)
		logins.Wait()
		made.Range(func(n, _ any) bool {
			run(t, beside(other, "tests"), fmt.Sprintf("table t%d", n))
			return true
		})
		if slices.Contains(besides(t, owner), "tests") {
			dropForced(t, other, "tests")
		}
	})
	t.Run("another access", func(t *testing.T) {
		create(t, "tests")
		if _, err := a.Databases.RoleUpdate(t.Context(), a.call(model.ActionDatabaseRoleUpdate), db.ID, "tests", databases.RoleChange{Access: new(model.AccessRead)}); err != nil {
			t.Fatal(err)
		}
		if left := besides(t, owner); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		run(t, other, "create database tests")
		a.deleteRole(t, db.ID, "tests")
		if left := besides(t, owner); !slices.Equal(left, []string{"tests"}) {
			t.Errorf("a database of the name of a role that reads: %v", left)
		}
	})
}

// dropForced drops a database of c's group, whatever uses it.
func dropForced(t testing.TB, c databases.Connection, name string) {
	t.Helper()
	conn := connect(t, c)
	for _, sql := range []string{"alter database " + name + " is_template false", "set role none", "drop database " + name + " with (force)"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// An appliance that dies between the record and the server completes the change, ends the sessions and audits it.
func TestDatabaseRoleInterrupted(t *testing.T) {
	t.Parallel()
	sealed := func(t testing.TB, a *appliance, d *model.Database, name, password string) {
		role, _ := d.Role(name)
		role.Name = name
		if role.Access == "" {
			role.Access = model.AccessRead
		}
		a.sealVerifier(t, d, &role, password)
		d.Roles = d.WithRole(role)
	}
	for name, test := range map[string]struct {
		action model.Action
		change func(testing.TB, *appliance, *model.Database)
		want   string // roles of the server
		logsIn string // the password of worker, "" for none
		ends   bool
	}{
		"created":     {model.ActionDatabaseRoleCreate, func(t testing.TB, a *appliance, d *model.Database) { sealed(t, a, d, "another", "the other one's") }, "another worker", "as before", false},
		"rotated":     {model.ActionDatabaseRoleRotate, func(t testing.TB, a *appliance, d *model.Database) { sealed(t, a, d, "worker", "the new one") }, "worker", "the new one", true},
		"deleted":     {model.ActionDatabaseRoleDelete, func(_ testing.TB, _ *appliance, d *model.Database) { d.Roles = nil }, "", "", true},
		"less access": {model.ActionDatabaseRoleUpdate, func(_ testing.TB, _ *appliance, d *model.Database) { d.Roles[0].Access = model.AccessRead }, "worker", "as before", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngine(t)
			db, owner := a.createDatabase(t, "shop")
			c := a.role(t, db.ID, "worker", model.AccessOwner)
			session := connect(t, c)
			a.beginChange(t, test.action, db.ID, func(d *model.Database) {
				test.change(t, a, d)
				if test.ends {
					d.PendingChange.EndRole = "worker"
				}
			})
			b := a.reopenKilled(t)
			testenv.Eventually(t, "the change in force", func() bool { return b.record(t, db.ID).PendingChange == nil })
			b.checkEnded(t, db.ID, test.action, model.OutcomeSuccess)
			if ended := isEnded(t, session); ended != test.ends {
				t.Errorf("its session has ended: %v", ended)
			}
			if got := serverRoles(t, owner); got != test.want {
				t.Errorf("the server has %q, want %q", got, test.want)
			}
			switch test.logsIn {
			case "":
				noLogin(t, c)
			case "as before":
				run(t, c, "select 1")
			default:
				run(t, withPassword(c, test.logsIn), "select 1")
				noLogin(t, c)
			}
			if owners := answer[bool](t, owner, "select exists (select from pg_auth_members where member = to_regrole('worker') and roleid = 'app'::regrole)"); owners != slices.Contains([]string{"created", "rotated"}, name) {
				t.Errorf("worker is a member of the owner: %v", owners)
			}
		})
	}
}
