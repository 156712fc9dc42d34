package operator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	client "holdfast/cli/client/sandbox"
	"holdfast/engine/databases"
	"holdfast/internal/testenv"
	"holdfast/server"
	"holdfast/server/operator"
)

// databasesIn returns the names of the databases that begin with the prefix.
func databasesIn(t *testing.T, url, prefix string) (names []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), "select datname from pg_database where starts_with(datname, $1) order by 1", prefix)
	names, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// execute runs a statement in a database.
func execute(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// use lets the library find a sandbox, as `run` does.
func use(t *testing.T, a *appliance, token string) {
	t.Helper()
	t.Setenv("HOLDFAST_SANDBOX_SOCKET", server.OperatorSocket(a.SocketDir()))
	t.Setenv("HOLDFAST_SANDBOX_TOKEN", token)
}

// TestDatabaseForEachTest has eight tests at once migrate one template, and each change its copy.
func TestDatabaseForEachTest(t *testing.T) {
	a := startAppliance(t)
	lease := a.take(t)
	use(t, a, lease.Token)
	var filled atomic.Int32
	var used sync.Map // names of databases
	template := client.Template{Hash: client.Hash("create table orders"), Fill: func(ctx context.Context, db client.Database) error {
		filled.Add(1)
		return execute(ctx, db.URL, "create table orders (n int); insert into orders values (1); alter database "+db.Name+" set timezone = 'Asia/Tokyo'")
	}}
	t.Run("tests", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				db := client.New(t, template)
				used.Store(db.Name, true)
				if err := execute(t.Context(), db.URL, `do $$ begin
					assert (select count(*) from orders) = 1 and current_setting('timezone') = 'Asia/Tokyo' and current_setting('search_path') like '%extensions';
					assert not (select rolsuper or rolcreatedb from pg_roles where rolname = current_user);
					end $$; insert into orders values (2); create extension hstore schema extensions`); err != nil && !strings.Contains(err.Error(), "permission denied for schema extensions") {
					t.Error(err)
				}
			})
		}
	})
	if n := filled.Load(); n != 1 {
		t.Errorf("the template was filled %d times", n)
	}
	var spare []string
	testenv.Eventually(t, "the end of the tests' databases, and one for the next test", func() bool {
		spare = slices.DeleteFunc(databasesIn(t, lease.Environment.DatabaseURL, "test_"), func(name string) bool {
			_, is := used.Load(name)
			return is
		})
		return len(spare) == 1
	})
	next := client.New(t, template)
	if next.Name != spare[0] {
		t.Errorf("a test got %s, not %s, which was made for it", next.Name, spare[0])
	}
	if err := execute(t.Context(), next.URL, "do $$ begin assert (select count(*) from orders) = 1; end $$"); err != nil {
		t.Error(err)
	}
	empty := client.New(t)
	if err := execute(t.Context(), empty.URL, "create table orders (n int)"); err != nil {
		t.Error(err)
	}
	for _, closed := range []string{"postgres", "template1", "template_1"} {
		if err := execute(t.Context(), strings.Replace(empty.URL, "/"+empty.Name, "/"+closed, 1), "select 1"); err == nil {
			t.Errorf("the owner may use %s", closed)
		}
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// failing is a test that must fail.
type failing struct {
	*testing.T
	failed atomic.Pointer[string]
}

// Fatalf implements client.TB.
func (f *failing) Fatalf(format string, _ ...any) { f.failed.Store(&format); panic(f) }

// TestTemplateOfAClientThatFails has a migration fail, and another client die during it: the next one migrates.
func TestTemplateOfAClientThatFails(t *testing.T) {
	a := startAppliance(t)
	lease := a.take(t)
	use(t, a, lease.Token)
	broken := client.Template{Hash: "h", Fill: func(context.Context, client.Database) error { return errors.New("no such table") }}
	test := &failing{T: t}
	func() {
		defer func() { _ = recover() }()
		client.New(test, broken)
	}()
	if test.failed.Load() == nil {
		t.Error("a failed migration was ignored")
	}
	filling, dead := a.post(t, lease.Token, operator.TestTemplatePath, `{"hash":"h"}`)
	if filling.Ready || filling.Environment == nil {
		t.Fatalf("%+v", filling)
	}
	if err := execute(t.Context(), filling.Environment.DatabaseURL, "create table half (n int)"); err != nil {
		t.Error(err)
	}
	var waiting sync.WaitGroup
	waiting.Go(func() {
		db := client.New(t, client.Template{Hash: "h", Fill: func(ctx context.Context, db client.Database) error {
			return execute(ctx, db.URL, "create table half (n int)")
		}})
		if err := execute(t.Context(), db.URL, "select from half"); err != nil {
			t.Error(err)
		}
	})
	dead.Close()
	waiting.Wait()
	if answer, conn := a.post(t, lease.Token, filling.Finish, `{}`); answer.Ready {
		t.Error("a template was finished whose client had gone")
		conn.Close()
	}
	if names := databasesIn(t, lease.Environment.DatabaseURL, "template_"); len(names) != 1 {
		t.Errorf("templates: %v", names)
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// answer is any first line of a response.
type answer struct {
	operator.TestTemplate
	Name          string
	Code, Message string
	status        int
}

// post posts over a connection of its own, and returns it with the response open.
func (a *appliance) post(t *testing.T, token, path, body string) (answer, net.Conn) {
	t.Helper()
	conn, err := net.Dial("unix", server.OperatorSocket(a.SocketDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://holdfast"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	said := answer{status: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	return said, conn
}

// TestSharedDatabasesOfTests uses the sandbox of clients without a lease: a database goes with the connection, and
// the sandbox with the appliance.
func TestSharedDatabasesOfTests(t *testing.T) {
	t.Parallel()
	a := startAppliance(t)
	first, one := a.post(t, "", operator.TestDatabasePath, `{}`)
	second, _ := a.post(t, "", operator.TestDatabasePath, `{}`)
	if first.Name == "" || first.Name == second.Name || first.Environment.Port != second.Environment.Port {
		t.Fatalf("%+v %+v", first, second)
	}
	one.Close()
	testenv.Eventually(t, "the end of a database whose client has gone", func() bool {
		return len(databasesIn(t, second.Environment.DatabaseURL, first.Name)) == 0
	})
	for _, c := range []struct {
		token, path, body string
		status            int
		word              string
	}{
		{"wrong", operator.TestDatabasePath, `{}`, 401, "token"},
		{"", operator.TestDatabasePath, `{"template":"none"}`, 404, "template"},
		{"", operator.TestDatabasePath, `{"templat":"none"}`, 422, "templat"},
		{"", operator.TestTemplatePath, `{}`, 422, "hash"},
		{"", operator.TestTemplatePath, `{"hash":"` + strings.Repeat("a", 129) + `"}`, 422, "128 bytes"},
		{"", operator.TestTemplatePath + "/X/finish", `{}`, 404, "template"},
	} {
		if got, _ := a.post(t, c.token, c.path, c.body); got.status != c.status || !strings.Contains(got.Message, c.word) {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.status, got.Message)
		}
	}
	if len(a.databases(t)) != 1 {
		t.Error("there is more than one shared sandbox")
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, "the removal of the shared sandbox", func() bool { return len(a.databases(t)) == 0 })
}

// TestSessionsThatTestsEnd: a test suite that ends all sessions but its own takes no database from the tests that follow.
func TestSessionsThatTestsEnd(t *testing.T) {
	t.Parallel()
	a := startAppliance(t)
	first, one := a.post(t, "", operator.TestDatabasePath, `{}`)
	if first.Name == "" {
		t.Fatalf("%+v", first)
	}
	second, _ := a.post(t, "", operator.TestDatabasePath, `{}`)
	one.Close()
	testenv.Eventually(t, "the end of the first database", func() bool {
		return len(databasesIn(t, second.Environment.DatabaseURL, first.Name)) == 0
	})
	for _, hash := range []string{"one", "two", "three"} {
		super, err := a.Databases.Instances.Connect(t.Context(), a.databases(t)[0].ID, databases.Maintenance)
		if err != nil {
			t.Fatal(err)
		}
		_, err = super.Exec(t.Context(), "select pg_terminate_backend(pid, 5000) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
		if err := errors.Join(err, super.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if next, _ := a.post(t, "", operator.TestTemplatePath, `{"hash":"`+hash+`"}`); next.status != http.StatusOK || next.Code != "" {
			t.Errorf("the next test gets %+v", next)
		}
	}
}
