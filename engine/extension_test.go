package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/testenv"
)

// An extension that cannot be created after the restart that it needs leaves the
// server without its library, and one that was interrupted there can be deleted.
func TestExtensionLibrary(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	const name = "pg_cron"
	a.needsExtension(t, db.ID, name)
	asSuperuser := func(sql string) (answer string) {
		t.Helper()
		conn, err := a.Databases.Instances.Connect(t.Context(), db.ID, db.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if rows := results[len(results)-1].Rows; len(rows) > 0 {
			answer = string(rows[0][0])
		}
		return answer
	}
	loads := func() bool {
		t.Helper()
		libraries := asSuperuser("show shared_preload_libraries")
		record, err := a.Databases.Record(db.ID)
		if err != nil {
			t.Fatal(err)
		}
		if loaded, kept := strings.Contains(libraries, name), slices.Contains(record.Preload, name); loaded != kept {
			t.Fatalf("the server loads %q, the record has %v", libraries, record.Preload)
		}
		return strings.Contains(libraries, name)
	}
	set := func() error {
		_, err := a.Databases.ExtensionSet(t.Context(), a.call(model.ActionExtensionSet), db.ID, databases.ExtensionChange{Name: name, Restart: true})
		return err
	}
	asSuperuser(`create function public.nothing() returns event_trigger language plpgsql as 'begin end';
		create event trigger nothing on ddl_command_start execute function public.nothing()`)
	disturbed := a.backupsDisturbed(t, db.ID)
	if err := set(); err == nil || loads() {
		t.Errorf("refused extension: %v; the library is loaded: %v", err, loads())
	}
	if disturbed() {
		t.Error("the server was restarted while a backup could have been made")
	}
	asSuperuser("drop event trigger nothing")
	pending := a.wasPending(t, db.ID, func(d model.Database) bool { return len(d.Preload) > 0 })
	if err := set(); err != nil || !loads() {
		t.Fatalf("%v; the library is loaded: %v", err, loads())
	}
	if !pending() {
		t.Error("if the appliance had died at the restart, nothing would have reverted the library")
	}
	// As a crash between the restart and the creation leaves it.
	asSuperuser("drop extension " + name)
	if err := a.Databases.ExtensionDelete(t.Context(), a.call(model.ActionExtensionDelete), db.ID, name); err != nil {
		t.Fatal(err)
	}
	record, err := meta.Value(a.Core.Meta.View, func(tx *meta.Tx) (model.Database, error) { return tx.Databases().Get(db.ID) })
	if err != nil || len(record.Preload) > 0 {
		t.Errorf("the record has %v, %v", record.Preload, err)
	}
	if err := a.Databases.ExtensionDelete(t.Context(), a.call(model.ActionExtensionDelete), db.ID, name); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

// wasPending watches a record until the function it returns is called, which reports whether the change was pending when
// has first found it.
func (a *appliance) wasPending(t *testing.T, id string, has func(model.Database) bool) func() bool {
	found := make(chan bool, 1)
	go func() {
		pending := false
		testenv.Poll(time.Minute, func() bool {
			db, err := a.Databases.Record(id)
			pending = db.PendingChange != nil
			return err != nil || has(db)
		})
		found <- pending
	}()
	return func() bool { return <-found }
}

// needsExtension skips the test if the machine lacks an extension.
func (a *appliance) needsExtension(t *testing.T, database, name string) {
	t.Helper()
	all, err := a.Databases.ExtensionList(t.Context(), a.call(model.ActionExtensionList), database)
	if err != nil {
		t.Fatal(err)
	}
	if !testenv.Extension(t, name, slices.ContainsFunc(all, func(x databases.ExtensionView) bool { return x.Name == name && x.Available != "" })) {
		t.Skip("the other extensions need no restart")
	}
}

// A restart unloads the library of an extension that was deleted, so that nothing is bound to the database's name.
func TestRestartUnloadsALibrary(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	const name = "pg_cron"
	a.needsExtension(t, db.ID, name)
	if _, err := a.Databases.ExtensionSet(t.Context(), a.call(model.ActionExtensionSet), db.ID, databases.ExtensionChange{Name: name, Restart: true}); err != nil {
		t.Fatal(err)
	}
	if err := a.Databases.ExtensionDelete(t.Context(), a.call(model.ActionExtensionDelete), db.ID, name); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
		t.Fatal(err)
	}
	conn, err := a.Databases.Instances.Connect(t.Context(), db.ID, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var libraries, bound string
	if err := conn.QueryRow(t.Context(), "select current_setting('shared_preload_libraries'), coalesce(current_setting('cron.database_name', true), '')").
		Scan(&libraries, &bound); err != nil || strings.Contains(libraries, name) || bound != "" {
		t.Errorf("the server loads %q for the database %q, %v", libraries, bound, err)
	}
}

// backupsDisturbed watches a database until the function it returns is called, which reports whether its server was
// down while nothing kept backups away.
func (a *appliance) backupsDisturbed(t *testing.T, id string) func() bool {
	ctx, stop := context.WithCancel(t.Context())
	found := make(chan bool, 1)
	down := func() bool {
		state, _, _ := a.Databases.Instances.Status(id)
		return state != postgres.StateRunning
	}
	go func() {
		disturbed := false
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil && !disturbed {
			disturbed = down() && !a.Core.Claims.Holds(databases.BackupClaim(id), "a restart") && down()
			<-ticker.C
		}
		found <- disturbed
	}()
	return func() bool {
		stop()
		return <-found
	}
}
