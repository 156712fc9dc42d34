package api

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// testInsight looks into a database while one session waits for another.
func testInsight(t *testing.T, w *world, path, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	execute := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	execute("create schema insight; create table insight.orders (id int primary key, n int, other int); create index orders_n on insight.orders (n)")
	execute("insert into insight.orders select g, g from generate_series(1, 5000) g; analyze insight.orders")
	execute("delete from insight.orders where id > 100")
	testStatements(t, w, path)
	testPlans(t, w, path)

	relations := get[wire.RelationList](t, w.do(t, request{method: "GET", path: path + "/relations", key: w.org.read}))
	table := relations.Tables[0]
	if table.Schema != "insight" || table.Name != "orders" || table.TableBytes == 0 || table.TotalBytes <= table.TableBytes || table.BloatBytes == nil {
		t.Errorf("%+v", table)
	}
	unused := map[string]bool{}
	for _, x := range relations.Indexes {
		unused[x.Name] = x.Unused
		if x.Schema == "insight" && (x.BloatBytes == nil || *x.BloatBytes >= x.SizeBytes) {
			t.Errorf("%+v", x)
		}
	}
	if !unused["orders_n"] || unused["orders_pkey"] {
		t.Errorf("%+v", relations.Indexes)
	}

	execute("begin; lock insight.orders")
	waiter, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(context.WithoutCancel(t.Context()), "select 'a secret' from insight.orders")
		waited <- err
		waiter.Close(context.Background())
	}()
	var locks []wire.LockedSession
	testenv.Eventually(t, "a session that waits", func() bool {
		locks = get[wire.LockList](t, w.do(t, request{method: "GET", path: path + "/locks", key: w.org.full})).Locks
		return len(locks) == 2
	})
	if locks[0].Depth != 0 || locks[1].Depth != 1 || *locks[1].Relation != "insight.orders" || *locks[1].Mode != "AccessShareLock" ||
		locks[1].BlockedBy[0] != locks[0].Session.ID || !strings.Contains(*locks[1].Session.Query, "a secret") {
		t.Errorf("%+v", locks)
	}
	if seen := w.do(t, request{method: "GET", path: path + "/locks", key: w.org.read}); strings.Contains(seen.text, "a secret") {
		t.Error("a key that only reads sees a statement")
	}
	if got := w.do(t, request{method: "GET", path: path + "/relations", key: w.org.read}); got.status != 409 || !strings.Contains(got.msg, "locks") {
		t.Errorf("sizes of a locked table: %d %s", got.status, got.msg)
	}
	if got := w.do(t, request{method: "POST", path: path + "/statements/explain", key: w.org.full, body: `{"statement":"select from insight.orders"}`}); got.status != 409 {
		t.Errorf("the plan of a locked table: %d %s", got.status, got.msg)
	}
	ended := w.do(t, request{method: "POST", path: path + "/sessions/" + locks[0].Session.ID + "/terminate", key: w.org.full})
	if err := <-waited; ended.status != 200 || err != nil {
		t.Errorf("%d %v", ended.status, err)
	}
	if err := drop(t.Context(), url); err != nil {
		t.Error(err)
	}
}

func drop(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, "drop schema insight cascade")
	return err
}

func testStatements(t *testing.T, w *world, path string) {
	t.Helper()
	list := get[wire.StatementList](t, w.do(t, request{method: "GET", path: path + "/statements?order=rows", key: w.org.read}))
	if !list.Enabled {
		if *list.Enable == "" {
			t.Error("it is not said how to count statements")
		}
		t.Log("NOT TESTED: statements, because the server does not load pg_stat_statements")
		return
	}
	first := list.Statements[0]
	if !strings.HasPrefix(first.Text, "insert into insight.orders select g, g from generate_series($1, $2)") || first.Calls != 1 || first.Rows != 5000 || first.HitRatio == nil {
		t.Errorf("%+v", first)
	}
	second := list.Statements[1]
	plan := get[wire.StatementPlan](t, w.do(t, request{method: "POST", path: path + "/statements/explain", key: w.org.full, body: `{"statement_id":"` + second.ID + `"}`}))
	if plan.Statement != "delete from insight.orders where id > $1" || !strings.Contains(plan.Plan, "Delete on orders") {
		t.Errorf("%+v", plan)
	}
	if got := w.do(t, request{method: "GET", path: path + "/statements?order=name", key: w.org.read}); got.status != 422 {
		t.Errorf("an unknown order: %d", got.status)
	}
	forgotten := get[wire.ResetStatements](t, w.do(t, request{method: "POST", path: path + "/statements/reset", key: w.org.full}))
	list = get[wire.StatementList](t, w.do(t, request{method: "GET", path: path + "/statements", key: w.org.read}))
	if forgotten.Forgotten == 0 || len(list.Statements) != 0 {
		t.Errorf("%+v, then %+v", forgotten, list)
	}
}

// testPlans asks for plans, and tries to have something executed.
func testPlans(t *testing.T, w *world, path string) {
	t.Helper()
	for _, c := range []struct{ body, says string }{
		{`{"statement":"select n from insight.orders where id = $1"}`, ""},
		{`{"statement":"delete from insight.orders"}`, ""},
		{`{"statement":"select * from insight.none"}`, "does not exist"},
		{`{"statement":"analyze delete from insight.orders"}`, "syntax error"},
		{`{"statement":"(analyze) delete from insight.orders"}`, "syntax error"},
		{`{"statement":"select 1; drop table insight.orders"}`, "multiple commands"},
		{`{"statement":"create role intruder"}`, "syntax error"},
		{`{"statement":"select from pg_authid"}`, "permission denied"},
		{`{"statement":"select pg_read_file('/etc/passwd')"}`, "permission denied"},
		{`{}`, "either statement or statement_id"},
		{`{"statement":"select 1","statement_id":"1"}`, "either statement or statement_id"},
		{`{"statement_id":"x"}`, "statement_id"},
		{`{"statement":"select '` + "\\u0000" + `'"}`, "NUL"},
	} {
		got := w.do(t, request{method: "POST", path: path + "/statements/explain", key: w.org.full, body: c.body})
		if wanted := c.says != ""; (got.status == 422) != wanted || !strings.Contains(got.msg, c.says) {
			t.Errorf("%s: %d %s", c.body, got.status, got.msg)
		}
	}
}
