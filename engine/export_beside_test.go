package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// connectTo opens a session in the database name beside the one of c, whatever it is called.
func connectTo(t testing.TB, c databases.Connection, name string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(c.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Database = name
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("%q: %v", name, err)
	}
	return conn
}

// inNamed runs statements in the database name beside the one of c.
func inNamed(t testing.TB, c databases.Connection, name string, statements ...string) {
	t.Helper()
	conn := connectTo(t, c, name)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%q: %s: %v", name, sql, err)
		}
	}
}

// export requests an export of a database beside the one with the id.
func (a *appliance) export(database, dbname string) (recovery.ExportView, error) {
	return a.Recovery.ExportCreate(a.Core.Lifetime, a.call(model.ActionExportCreate), database, dbname)
}

func (a *appliance) mustExport(t testing.TB, database, dbname string) recovery.ExportView {
	t.Helper()
	view, err := a.export(database, dbname)
	if err != nil {
		t.Fatalf("%q: %v", dbname, err)
	}
	return view
}

// awaitExportOf waits until an export of dbname has one of the statuses.
func (a *appliance) awaitExportOf(t testing.TB, database, dbname, id string, statuses ...model.ExportStatus) (view recovery.ExportView) {
	t.Helper()
	testenv.Catch(t, time.Minute, fmt.Sprintf("an export of %q that is %v", dbname, statuses), func() bool {
		var err error
		view, err = a.Recovery.ExportGet(a.call(model.ActionExportGet), database, dbname)
		a.Recovery.Exports.Wake() // instead of waiting for the interval
		for _, s := range statuses {
			if err == nil && view.ID == id && view.Status == s {
				return true
			}
		}
		return false
	})
	return view
}

// wantNoExport checks that there is none of the name.
func (a *appliance) wantNoExport(t testing.TB, database, dbname string) {
	t.Helper()
	if view, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), database, dbname); model.CodeOf(err) != model.CodeNotFound || !strings.Contains(err.Error(), "dbname") {
		t.Errorf("an export of %q: %+v, %v", dbname, view, err)
	}
}

// restored returns what a query finds in a database into which an export was restored.
func restored(t *testing.T, dump []byte, query string) (found string) {
	t.Helper()
	other := postgrestest.Instance(t)
	if err := restoreInto(t, other, dump, "--no-acl"); err != nil {
		t.Fatal(err)
	}
	if err := other.Superuser(t, other.Tenant.Database).QueryRow(t.Context(), query).Scan(&found); err != nil {
		t.Fatal(err)
	}
	return found
}

const contentOfLines = "select count(*) || ' ' || sum(hashtext(line)::bigint) || ' ' || md5(string_agg(line, ',' order by n)) from public.lines"

// An export of a database beside the tenant's has what that has, also where PUBLIC may not connect. One of each name is kept, and
// none once its database is gone.
func TestExportBeside(t *testing.T) {
	t.Parallel()
	cfg := exporting(t)
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, owner := a.createDatabase(t, "shop")
	run(t, owner, "create table kept as select 7 as n")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	const name = `It's "two"/../x`
	quoted := pgx.Identifier{name}.Sanitize()
	run(t, c, "create database "+quoted)
	inNamed(t, c, name, "revoke all on database "+quoted+" from public", "create table lines as select n, md5(n::text) as line from generate_series(1, 5000) n",
		"alter table lines enable row level security", "alter table lines force row level security")
	conn := connectTo(t, c, name)
	var want string
	if err := conn.QueryRow(t.Context(), strings.Replace(contentOfLines, "from public.lines", "from (select n, md5(n::text) as line from generate_series(1, 5000) n) l", 1)).Scan(&want); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	main := a.awaitExportOf(t, db.ID, "", a.mustExport(t, db.ID, "shop").ID, model.ExportReady)
	first := a.awaitExportOf(t, db.ID, name, a.mustExport(t, db.ID, name).ID, model.ExportReady)
	if main.DBName != "" || first.DBName != name || first.ID == main.ID {
		t.Errorf("%+v and %+v", main.Export, first.Export)
	}
	if plain := "shop-It_s__two__.._x-"; !strings.HasPrefix(first.Filename, plain) || strings.ContainsAny(first.Filename, `/'" `) {
		t.Errorf("its file is named %q", first.Filename)
	}
	dump, err := a.download(t, first)
	if err != nil {
		t.Fatal(err)
	}
	if got := restored(t, dump, contentOfLines); got != want {
		t.Errorf("restored are %s, not %s", got, want)
	}
	second := a.awaitExportOf(t, db.ID, name, a.mustExport(t, db.ID, name).ID, model.ExportReady)
	if _, err := a.download(t, first); model.CodeOf(err) != model.CodeNotFound || second.ID == first.ID {
		t.Errorf("the replaced export: %v", err)
	}
	if _, err := a.download(t, main); err != nil {
		t.Errorf("the main one's: %v", err)
	}
	all, err := a.Recovery.ExportsBeside(a.call(model.ActionExportGet), db.ID)
	if err != nil || len(all) != 1 || all[name].ID != second.ID {
		t.Errorf("of those beside: %+v, %v", all, err)
	}
	a.wantBackupBytes(t, by, "with exports of two databases")
	run(t, c, "drop database "+quoted)
	if _, err := a.download(t, second); err != nil {
		t.Errorf("of one that was dropped: %v", err)
	}
	a.awaitExportOf(t, db.ID, "", a.mustExport(t, db.ID, "").ID, model.ExportReady)
	a.wantNoExport(t, db.ID, name)
	if _, err := a.download(t, second); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("after the next export of the main one: %v", err)
	}
	a.wantBackupBytes(t, by, "with an export of one")
}

// Names of databases that cannot be exported, and what a client learns of them.
func TestExportBesideRefused(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, owner := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	run(t, c, "create database closed")
	run(t, c, "alter database closed allow_connections false")
	run(t, c, "create database \"full\"")
	run(t, c, `alter database "full" connection limit 0`)
	if _, err := a.export(db.ID, "full"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "CONNECTION LIMIT -1") {
		t.Errorf("an export of one without connections: %v", err)
	}
	for name, code := range map[string]model.Code{
		"none": model.CodeNotFound, "postgres": model.CodeNotFound, "template0": model.CodeNotFound, "template1": model.CodeNotFound, "Shop": model.CodeNotFound,
		strings.Repeat("n", 64): model.CodeNotFound, "a\xff": model.CodeNotFound, "closed": model.CodeConflict,
	} {
		_, export := a.export(db.ID, name)
		_, rls := a.Databases.RLSGet(t.Context(), a.call(model.ActionRLSGet), db.ID, name)
		_, _, sizes := a.Insight.Relations(t.Context(), a.call(model.ActionRelationList), db.ID, name)
		for what, err := range map[string]error{"export": export, "row-level security": rls, "sizes": sizes} {
			if model.CodeOf(err) != code || !strings.HasPrefix(model.PublicMessage(err), "dbname: ") {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	run(t, owner, "alter database shop connection limit 0")
	if x := a.awaitExportOf(t, db.ID, "", a.mustExport(t, db.ID, "").ID, model.ExportFailed); x.Attempts != 1 || !strings.Contains(x.Error, "CONNECTION LIMIT 0, which a restart takes back") {
		t.Errorf("an export of the tenant's without connections: %+v", x.Export)
	}
	all, err := a.Recovery.ExportsBeside(a.call(model.ActionExportGet), db.ID)
	if err != nil || len(all) > 0 {
		t.Errorf("exports: %+v, %v", all, err)
	}
}

// holdExports begins an export of the main database that waits for a lock, so that others of the organization wait for it.
func (a *appliance) holdExports(t *testing.T, id string, owner databases.Connection) (release func()) {
	t.Helper()
	holder := holdTable(t, owner)
	a.awaitExportOf(t, id, "", a.mustExport(t, id, "").ID, model.ExportRunning)
	return func() {
		if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
			t.Fatal(err)
		}
	}
}

// A database that goes, is closed or loses its name before its export begins makes the export fail at once, in words.
func TestExportBesideOfWhatIsGone(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, owner := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	names := []string{"gone", "closed", "renamed", "stays"}
	for _, name := range names {
		run(t, c, "create database "+name+" strategy file_copy")
	}
	release := a.holdExports(t, db.ID, owner)
	ids := map[string]string{}
	for _, name := range names {
		ids[name] = a.mustExport(t, db.ID, name).ID
		if again := a.mustExport(t, db.ID, name); again.ID != ids[name] {
			t.Errorf("%s: another request made another export", name)
		}
	}
	run(t, c, "drop database gone")
	run(t, c, "alter database closed allow_connections false")
	run(t, c, `alter database renamed rename to "Renamed"`)
	release()
	for _, name := range names[:3] {
		x := a.awaitExportOf(t, db.ID, name, ids[name], model.ExportFailed)
		if x.Attempts != 1 || !strings.HasPrefix(x.Error, "dbname: ") || !strings.Contains(x.Error, name) {
			t.Errorf("%s: %+v", name, x.Export)
		}
	}
	a.awaitExportOf(t, db.ID, "stays", ids["stays"], model.ExportReady)
	run(t, c, "alter database closed allow_connections true")
	a.awaitExportOf(t, db.ID, "closed", a.mustExport(t, db.ID, "closed").ID, model.ExportReady)
	all, err := a.Recovery.ExportsBeside(a.call(model.ActionExportGet), db.ID)
	if err != nil || all["closed"].Newer != nil {
		t.Errorf("the failed one is still there: %+v, %v", all, err)
	}
	// A rename of the main one takes the name.
	taken := "stays"
	if _, err := a.Databases.Update(t.Context(), a.call(model.ActionDatabaseUpdate), db.ID, databases.Change{Name: &taken}); err != nil {
		t.Fatal(err)
	}
	a.awaitExportOf(t, db.ID, "", a.mustExport(t, db.ID, "stays").ID, model.ExportReady)
	if all, err = a.Recovery.ExportsBeside(a.call(model.ActionExportGet), db.ID); err != nil || len(all) != 1 || all["closed"].Status != model.ExportReady {
		t.Errorf("afterwards there are %+v, %v", all, err)
	}
}

// Exports of a bounded number of names are kept. One more replaces the oldest that is made.
func TestExportsBesideAreBounded(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, owner := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	run(t, c, "create database one")
	run(t, c, "create database two")
	release := a.holdExports(t, db.ID, owner)
	status := model.ExportPending
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		for n := range postgres.MaxBeside {
			if n == postgres.MaxBeside/2 {
				status = model.ExportFailed
			}
			if err := tx.Exports().Insert(model.Export{
				ID: a.Core.NewID(model.ResourceExport), Organization: a.org, Database: db.ID, DBName: fmt.Sprintf("d%02d", n), Status: status,
				NotBefore: time.Now().Add(time.Hour), CreatedAt: time.Now(), Requested: true,
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	first := a.mustExport(t, db.ID, "one")
	a.wantNoExport(t, db.ID, fmt.Sprintf("d%02d", postgres.MaxBeside/2))
	a.wantExports(t, db.ID, postgres.MaxBeside)
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Exports().ChangeWhere(func(x model.Export) bool { return x.Status == model.ExportFailed }, func(x *model.Export) { x.Status = model.ExportPending })
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.export(db.ID, "two"); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "still to be made") {
		t.Errorf("one more: %v", err)
	}
	if again := a.mustExport(t, db.ID, "one"); again.ID != first.ID {
		t.Errorf("one that waits: %+v", again)
	}
	if _, err := a.export(db.ID, ""); err != nil {
		t.Errorf("of the main one: %v", err)
	}
	a.wantExports(t, db.ID, postgres.MaxBeside)
	release()
}

func (a *appliance) wantExports(t testing.TB, id string, want int) {
	t.Helper()
	if all, err := a.Recovery.ExportsBeside(a.call(model.ActionExportGet), id); err != nil || len(all) != want {
		t.Errorf("there are exports of %d databases beside, not %d, %v", len(all), want, err)
	}
}

// Exports of databases beside are requested of one that sleeps, wait for a crash to be over, and go with the database.
func TestExportBesideLives(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, owner := a.createDatabase(t, "shop")
	c := a.role(t, db.ID, "tests", model.AccessCreate)
	testsIn(t, c, "tests")
	a.letSleep(t, db.ID, 10*time.Second)
	a.sleepSoon(t, db.ID)
	found, err := a.Databases.PostgresDatabaseList(t.Context(), a.call(model.ActionPostgresDatabaseList), db.ID)
	if err != nil || len(found) != 2 || !found[0].Main || found[0].Name != "shop" || found[1].Main || found[1].Name != "tests" {
		t.Errorf("of one that sleeps: %+v, %v", found, err)
	}
	a.sleepSoon(t, db.ID)
	tables, _, err := a.Insight.Relations(t.Context(), a.call(model.ActionRelationList), db.ID, "tests")
	if err != nil || len(tables) != 1 || tables[0].Name != "kept" {
		t.Errorf("of one that sleeps: %+v, %v", tables, err)
	}
	a.sleepSoon(t, db.ID)
	first := a.awaitExportOf(t, db.ID, "tests", a.mustExport(t, db.ID, "tests").ID, model.ExportReady)

	a.sleepSoon(t, db.ID)
	release := a.holdExports(t, db.ID, owner)
	second := a.mustExport(t, db.ID, "tests")
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { // as if it were being made
		return tx.Exports().Change(second.ID, func(x *model.Export) { x.Status = model.ExportRunning })
	}); err != nil {
		t.Fatal(err)
	}
	release()
	a.abandon(t)
	b := a.reopen(t)
	if view := b.awaitExportOf(t, db.ID, "tests", second.ID, model.ExportReady); view.DBName != "tests" || view.Newer != nil {
		t.Errorf("after the crash: %+v", view)
	}
	if _, err := b.download(t, first); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("the replaced export: %v", err)
	}
	if _, err := b.Databases.Delete(t.Context(), b.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Databases.TrashPurge(b.call(model.ActionTrashPurge), db.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Exports().All(func(x model.Export) error { t.Errorf("left is %+v", x); return nil })
	}); err != nil {
		t.Fatal(err)
	}
}
