package api

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/internal/testenv"
	"holdfast/server/api/wire"
)

// TestPostgresDatabases lists databases beside the main one, one of which has a name that is not UTF-8, inspects and exports one.
func TestPostgresDatabases(t *testing.T) {
	w := start(t, func(c *core.Config) { c.Exports = true })
	db := w.createDatabase(t, `{"project":"`+w.org.project+`","name":"shop"}`)
	path := "/databases/" + db.ID
	role := get[wire.DatabaseRoleSecret](t, w.do(t, request{method: "POST", path: path + "/roles", key: w.org.full, body: `{"name":"tests","access":"create"}`}))
	execute := func(database string, statements ...string) {
		t.Helper()
		config, err := pgx.ParseConfig(role.Connection.ConnectionURL)
		if err != nil {
			t.Fatal(err)
		}
		config.Database = database
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		for _, sql := range statements {
			if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
	}
	const name = "Bob's tests & more?"
	quoted := pgx.Identifier{name}.Sanitize()
	execute("shop", "create database "+quoted, "create database closed", "alter database closed allow_connections false",
		"create database bytes template template0 encoding 'SQL_ASCII' locale_provider libc lc_collate 'C' lc_ctype 'C'")
	execute(name, "create table mine (n int primary key)", "create policy p on mine using (true)")
	execute("bytes", "set client_encoding = 'SQL_ASCII'", "create table \"caf\xe9\" (n int)",
		"create database \"caf\xe9\" template template0 encoding 'SQL_ASCII' locale_provider libc lc_collate 'C' lc_ctype 'C'")

	list := get[wire.PostgresDatabaseList](t, w.do(t, request{method: "GET", path: path + "/databases", key: w.org.read})).Databases
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
		if d.Main != (d.Name == "shop") || d.AllowConnections != (d.Name != "closed") || d.SizeBytes < 1<<20 {
			t.Errorf("%+v", d)
		}
	}
	if got, want := strings.Join(names, "|"), "shop|"+name+"|bytes|caf\uFFFD|closed|tests"; got != want || list[0].Encoding != "UTF8" || list[2].Encoding != "SQL_ASCII" {
		t.Errorf("%s, want %s; %+v", got, want, list)
	}
	of := func(what, dbname string) request {
		return request{method: "GET", path: path + "/" + what + "?dbname=" + url.QueryEscape(dbname), key: w.org.full}
	}
	rls := get[wire.RLS](t, w.do(t, of("rls", name)))
	if len(rls.Tables) != 1 || rls.Tables[0].Table != "mine" || *rls.Tables[0].Warning != wire.RLSPoliciesButDisabled {
		t.Errorf("%+v", rls)
	}
	sizes := get[wire.RelationList](t, w.do(t, of("relations", name)))
	if len(sizes.Tables) != 1 || sizes.Tables[0].Name != "mine" || len(sizes.Indexes) != 1 {
		t.Errorf("%+v", sizes)
	}
	for _, what := range []string{"rls", "relations"} {
		if got := w.do(t, of(what, "bytes")); got.status != 200 || !strings.Contains(got.text, `caf\ufffd`) {
			t.Errorf("%s with a name that is not UTF-8: %d %s", what, got.status, got.text)
		}
	}
	if got := w.do(t, request{method: "GET", path: path + "/statements", key: w.org.full}); got.status != 200 {
		t.Errorf("statements, which PostgreSQL keeps for all databases together: %d %s", got.status, got.text)
	}
	for _, what := range []string{"rls", "relations"} {
		if got := w.do(t, of(what, "shop")); strings.Contains(got.text, "mine") || got.status != 200 {
			t.Errorf("%s of the main one: %d %s", what, got.status, got.text)
		}
	}
	for dbname, status := range map[string]int{"none": 404, "postgres": 404, "template1": 404, "caf\uFFFD": 404, strings.Repeat("ä", 32): 404, "closed": 409} {
		for _, what := range []string{"rls", "relations", "export"} {
			want := status
			if what == "export" { // none was made
				want = 404
			}
			if got := w.do(t, of(what, dbname)); got.status != want || !strings.HasPrefix(got.msg, "dbname: ") {
				t.Errorf("%s of %s: %d %s", what, dbname, got.status, got.msg)
			}
		}
		got := w.do(t, request{method: "POST", path: path + "/export", key: w.org.full, body: `{"dbname":"` + dbname + `"}`})
		if got.status != status || !strings.HasPrefix(got.msg, "dbname: ") {
			t.Errorf("an export of %s: %d %s", dbname, got.status, got.msg)
		}
	}
	for _, body := range []string{`{"dbname":""}`, `{"dbname":"` + strings.Repeat("n", 64) + `"}`, `{"dbname":null,"x":1}`, `{"name":"shop"}`} {
		if got := w.do(t, request{method: "POST", path: path + "/export", key: w.org.full, body: body}); got.status != 422 {
			t.Errorf("%s: %d %s", body, got.status, got.msg)
		}
	}
	if got := w.do(t, of("rls", "")); got.status != 422 {
		t.Errorf("no name: %d %s", got.status, got.msg)
	}

	x := get[wire.Export](t, w.do(t, request{method: "POST", path: path + "/export", key: w.org.full, body: `{"dbname":"` + name + `"}`}))
	if x.DBName == nil || *x.DBName != name {
		t.Errorf("%+v", x)
	}
	testenv.Eventually(t, "the export", func() bool {
		x = get[wire.Export](t, w.do(t, of("export", name)))
		return x.Status == wire.ExportReady
	})
	if !strings.HasPrefix(*x.Filename, "shop-Bob_s_tests___more_-") || *x.DBName != name {
		t.Errorf("%+v", x)
	}
	main := get[wire.Export](t, w.do(t, request{method: "POST", path: path + "/export", key: w.org.full, body: `{"dbname":"shop"}`}))
	if main.DBName != nil || main.ID == x.ID {
		t.Errorf("%+v", main)
	}
	if got := w.do(t, request{method: "GET", path: path + "/databases", key: w.other.full}); got.status != 404 {
		t.Errorf("another organization's: %d", got.status)
	}
}
