package engine

import (
	"errors"
	"fmt"
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

// beside returns how to connect to a database beside the one of c.
func beside(c databases.Connection, database string) databases.Connection {
	c.Database = database
	return c
}

// testsIn makes a database as c, with a row.
func testsIn(t testing.TB, c databases.Connection, name string) {
	t.Helper()
	run(t, c, "create database "+name)
	run(t, beside(c, name), "create table kept as select 7 as n")
}

// startWithTests starts an engine with a database shop and, beside it, one that its role tests has made, each with a row.
func startWithTests(t *testing.T) (a *appliance, db databases.View, owner, c databases.Connection) {
	t.Helper()
	a = startEngine(t)
	db, owner = a.createDatabase(t, "shop")
	run(t, owner, "create table kept as select 7 as n")
	c = a.role(t, db.ID, "tests", model.AccessCreate)
	testsIn(t, c, "tests")
	return a, db, owner, c
}

func wantTests(t testing.TB, c databases.Connection) {
	t.Helper()
	if n := answer[int](t, c, "select n from kept"); n != 7 {
		t.Errorf("it has %d", n)
	}
}

// newPassword gives a role of a copy a password, and returns how to connect as it.
func (a *appliance) newPassword(t testing.TB, id, role string) databases.Connection {
	t.Helper()
	rotated, err := a.Databases.RoleRotatePassword(t.Context(), a.call(model.ActionDatabaseRoleRotate), id, role)
	if err != nil {
		t.Fatal(err)
	}
	return a.inTenants(t, id, rotated.Connection)
}

// besides lists the databases beside the tenant's.
func besides(t testing.TB, c databases.Connection) []string {
	t.Helper()
	return strings.Fields(answer[string](t, c, `select coalesce(string_agg(datname, ' ' order by datname), '') from pg_database
		where datname not in ('postgres', 'template0', 'template1', current_database())`))
}

// Restores and branches cover the databases that a role has made, also where one of them has the name of the copy.
func TestDatabasesBesideSurviveRestores(t *testing.T) {
	t.Parallel()
	a, db, owner, c := startWithTests(t)
	backup := a.backUp(t, db.ID)
	run(t, c, "drop database tests")
	a.restore(t, db.ID, backup.ID)
	wantTests(t, beside(c, "tests"))
	wantTests(t, owner)
	a.undo(t, db.ID)
	if left := besides(t, owner); len(left) > 0 {
		t.Errorf("after an undo there are %q", left)
	}
	name := "tests"
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, backup.ID, &name)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	copied := a.newPassword(t, op.NewDatabase, "tests")
	moved := besides(t, copied)
	if len(moved) != 1 || !strings.HasPrefix(moved[0], "tests_") {
		t.Fatalf("the copy has %q", moved)
	}
	wantTests(t, beside(copied, moved[0]))
	wantTests(t, a.connectionOf(t, op.NewDatabase))
	testsIn(t, c, "tests")
	a.backUp(t, db.ID)
	made, _ := a.branch(t, db.ID, recovery.NewBranch{Name: "try"})
	wantTests(t, beside(a.newPassword(t, made.ID, "tests"), "tests"))
}

// A rename takes the name of another database, whoever is connected to either.
func TestDatabasesBesideAndRenames(t *testing.T) {
	t.Parallel()
	a, db, owner, c := startWithTests(t)
	sessions := []*pgx.Conn{connect(t, c), connect(t, beside(c, "tests"))}
	name := "tests"
	if _, err := a.Databases.Update(t.Context(), a.call(model.ActionDatabaseUpdate), db.ID, databases.Change{Name: &name}); err != nil {
		t.Fatal(err)
	}
	for _, conn := range sessions {
		mustBeEnded(t, conn)
	}
	owner.Database, c.Database = "tests", "tests"
	wantTests(t, owner)
	moved := besides(t, c)
	if len(moved) != 1 || !strings.HasPrefix(moved[0], "tests_") {
		t.Fatalf("there are %q", moved)
	}
	wantTests(t, beside(c, moved[0]))
}

// The allow-list and a deletion of the role end sessions in all databases, a client of one wakes the server, and the
// owner reaches none.
func TestDatabasesBesideAndAccess(t *testing.T) {
	t.Parallel()
	a, db, owner, c := startWithTests(t)
	refused(t, beside(owner, "tests"))
	refused(t, beside(owner, "postgres"))
	refused(t, beside(c, "template1"))
	a.letSleep(t, db.ID, 10*time.Second)
	a.sleepSoon(t, db.ID)
	for _, refused := range []databases.Connection{beside(c, "template1"), beside(owner, "postgres")} {
		if _, err := pgx.Connect(t.Context(), refused.URL()+"?sslmode=disable"); err == nil || !a.Databases.IsAsleep(db.ID) {
			t.Errorf("the database %s: %v, asleep %v", refused.Database, err, a.Databases.IsAsleep(db.ID))
		}
	}
	session, err := pgx.Connect(t.Context(), beside(c, "tests").URL()+"?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close(t.Context())
	a.deleteRole(t, db.ID, "tests")
	mustBeEnded(t, session)
	again := a.role(t, db.ID, "again", model.AccessCreate)
	wantTests(t, beside(again, "tests"))
	session = connect(t, beside(again, "tests"))
	if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, nil); err != nil {
		t.Fatal(err)
	}
	mustBeEnded(t, session)
}

// A role that creates databases finds one made, in which its URL lets it work at once, and which is like those that it makes
// itself: tools drop it and make it again.
func TestRoleFindsDatabase(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, owner := a.createDatabase(t, "shop")
	create := func(name string) (databases.Connection, error) {
		made, err := a.Databases.RoleCreate(t.Context(), a.call(model.ActionDatabaseRoleCreate), db.ID, databases.NewRole{Name: name, Access: model.AccessCreate})
		return made.Connection, err
	}
	for name, database := range map[string]string{"tests": "tests", "shop": "shop_tests", "template1": "template1_tests"} {
		c, err := create(name)
		if err != nil || c.Database != database {
			t.Fatalf("%s gets %q, %v", name, c.Database, err)
		}
		run(t, c, "create table kept as select 7 as n")
		refused(t, beside(owner, database))
		run(t, beside(c, "postgres"), "drop database "+database)
		run(t, beside(c, "postgres"), "create database "+database)
		testsIn(t, beside(c, "postgres"), name+"s")
		a.deleteRole(t, db.ID, name)
		again, err := create(name)
		if err != nil || again.Database != database {
			t.Fatalf("%s gets %q again, %v", name, again.Database, err)
		}
		wantTests(t, beside(again, name+"s"))
	}
	a.role(t, db.ID, "worker", model.AccessWrite)
	access := model.AccessCreate
	if _, err := a.Databases.RoleUpdate(t.Context(), a.call(model.ActionDatabaseRoleUpdate), db.ID, "worker", databases.RoleChange{Access: &access}); err != nil {
		t.Fatal(err)
	}
	rotated, err := a.Databases.RoleRotatePassword(t.Context(), a.call(model.ActionDatabaseRoleRotate), db.ID, "worker")
	if err != nil {
		t.Fatal(err)
	}
	run(t, rotated.Connection, "create table kept as select 7 as n")
	for n := len(besides(t, owner)); n < postgres.MaxBeside; n++ {
		run(t, rotated.Connection, fmt.Sprintf("create database more%d strategy file_copy", n))
	}
	if _, err := create("last"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "access: ") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := a.Databases.RoleGet(a.call(model.ActionDatabaseRoleGet), db.ID, "last"); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the role that was refused: %v", err)
	}
}

// However fast clients create databases, there are about as many as there may be.
func TestDatabasesBesideAreBounded(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	var burst sync.WaitGroup
	for client := range 4 {
		conn := connect(t, c)
		burst.Go(func() {
			for n := range 2 * postgres.MaxBeside {
				_, err := conn.Exec(t.Context(), fmt.Sprintf("create database d%d_%d strategy file_copy", client, n))
				if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
			t.Error("it was never refused")
		})
	}
	burst.Wait()
	made := besides(t, c)
	t.Logf("a burst made %d databases", len(made))
	if len(made) < postgres.MaxBeside || len(made) > 3*postgres.MaxBeside { // on a busy machine it is noticed later
		t.Errorf("a burst made %d databases", len(made))
	}
	for _, name := range made[:len(made)-postgres.MaxBeside+1] {
		run(t, c, "drop database "+name)
	}
	testenv.Eventually(t, "room for another", func() bool {
		_, err := connect(t, c).Exec(t.Context(), "create database another")
		return err == nil
	})
}
