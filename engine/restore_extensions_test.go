package engine

import (
	"strings"
	"testing"

	"holdfast/engine/model"
)

// A restore of data whose extension has no files on this machine is refused, says what to install, and leaves the
// database as it is; so is a restore into a new database.
func TestRestoreWithoutAnExtensionsFiles(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table steps (n int)")
	commitStep(t, c, 1)
	super := func(sql string) {
		t.Helper()
		conn, err := a.Databases.Instances.Connect(t.Context(), db.ID, db.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	// The catalog says that there is an extension, and the machine has no such files.
	super(`set allow_system_table_mods = on; insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
		values (99999, 'hypopg_gone', 10, 'public'::regnamespace, false, '1.0')`)
	b := a.backUp(t, db.ID)
	super("set allow_system_table_mods = on; delete from pg_extension where extname = 'hypopg_gone'")
	commitStep(t, c, 2)
	name := "copy"
	for _, into := range []*string{nil, &name} {
		op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, into)
		if err != nil {
			t.Fatal(err)
		}
		if message := a.awaitOperation(t, op, model.OperationFailed); !strings.Contains(message, "hypopg_gone") || !strings.Contains(message, "nothing was changed") {
			t.Errorf("the restore failed: %s", message)
		}
		if got := steps(t, c); got != "1 2" {
			t.Errorf("after a refused restore: %s", got)
		}
	}
	// Data without it is restored.
	a.restore(t, db.ID, a.backUp(t, db.ID).ID)
	if got := steps(t, c); got != "1 2" {
		t.Errorf("restored: %s", got)
	}
	a.awaitIdle(t)
	a.checkTidy(t)
}
