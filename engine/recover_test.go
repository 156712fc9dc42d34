package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/backup"
	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// crash is a state that a killed appliance can leave a database in, and the expected result of the next start.
type crash struct {
	name string
	// leave puts the database into that state; its table kept holds one row, 1.
	leave func(t *testing.T, a *appliance, db model.Database)
	// check examines the database in the next engine. c connects with the recorded password; it is zero if the database
	// is gone.
	check func(t *testing.T, a *appliance, db model.Database, c databases.Connection)
}

// undamaged checks that a database is as it was before an operation.
func undamaged(t *testing.T, db model.Database, c databases.Connection) {
	t.Helper()
	if db.Status != model.DatabaseAvailable || db.Operation != "" || db.Generation != 1 {
		t.Errorf("%s, operation %q, generation %d", db.Status, db.Operation, db.Generation)
	}
	if n := answer[int](t, c, "select sum(n) from kept"); n != 1 {
		t.Errorf("the rows sum up to %d, not 1", n)
	}
}

// before checks that a database is as it was before an operation, and that the operation has failed.
func before(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
	t.Helper()
	undamaged(t, db, c)
	for _, op := range a.operations(t, db.ID) {
		if op.Phase != byHand {
			continue
		}
		if op.Status != model.OperationFailed || op.Error != core.ErrInterrupted.Message || op.CompletedAt == nil {
			t.Errorf("operation %s is %s: %q", op.Type, op.Status, op.Error)
		}
	}
}

func gone(t *testing.T, a *appliance, db model.Database, _ databases.Connection) {
	t.Helper()
	if _, err := a.Databases.Record(db.ID); !errors.Is(err, meta.ErrNotFound) {
		t.Errorf("the record is still there: %v", err)
	}
	if _, err := os.Lstat(a.Databases.DatabaseDirectory(db.ID)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the files are still there: %v", err)
	}
	// Its name is free again.
	if view, _ := a.createDatabase(t, db.Name); view.Status != model.DatabaseAvailable {
		t.Errorf("created again: %s", view.Status)
	}
}

// quarantined checks that the database is gone and that the files of a generation are in quarantine.
func quarantined(generation string) func(*testing.T, *appliance, model.Database, databases.Connection) {
	return func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
		t.Helper()
		gone(t, a, db, c)
		kept, err := filepath.Glob(filepath.Join(a.cfg.DataDir, core.QuarantineDir, "*-"+db.ID, generation, "PG_VERSION"))
		if err != nil || len(kept) != 1 {
			t.Errorf("quarantined: %q, %v", kept, err)
		}
	}
}

// quarantineOf returns the parts of a database's directory that are in quarantine.
func quarantineOf(t *testing.T, a *appliance, db model.Database) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.cfg.DataDir, core.QuarantineDir, "*-"+db.ID+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		_, name, _ := strings.Cut(filepath.Base(path), db.ID+"-")
		names = append(names, name)
	}
	return names
}

// oneBackup checks that a database has one completed backup, which can be restored.
func oneBackup(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
	t.Helper()
	before(t, a, db, c)
	all := a.backups(t, db.ID)
	if len(all) != 1 || all[0].Status != model.BackupCompleted || all[0].CompletedAt == nil || all[0].ManifestBLAKE3 == "" {
		t.Fatalf("backups: %+v", all)
	}
	run(t, c, "drop table kept")
	a.restore(t, db.ID, all[0].ID)
	before(t, a, db, c)
}

func inTrash(t *testing.T, a *appliance, db model.Database, _ databases.Connection) {
	t.Helper()
	found, err := a.Databases.Record(db.ID)
	if err != nil || found.Trash == nil || found.Operation != "" {
		t.Fatalf("the deleted database: %+v, %v", found, err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Fatalf("restore from trash: %v", err)
	}
	c, err := a.Databases.ConnectionOf(found, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := answer[int](t, c, "select sum(n) from kept"); n != 1 {
		t.Errorf("the rows sum up to %d, not 1", n)
	}
}

func (a *appliance) operations(t testing.TB, database string) []model.DatabaseOperation {
	t.Helper()
	var all []model.DatabaseOperation
	err := a.Core.Meta.View(func(tx *meta.Tx) (err error) {
		all, err = core.AllUnder(tx.Operations(), database)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// byHand is the phase of operations that a test began instead of the engine.
const byHand = "by hand"

// beginByHand records a running operation.
func (a *appliance) beginByHand(
	t *testing.T, db model.Database, kind model.OperationType, status model.DatabaseStatus, generation int,
) model.DatabaseOperation {
	t.Helper()
	op := a.Databases.NewOperation(db, kind, byHand)
	op.Generation = generation
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return databases.InsertOperation(tx, op, status) }); err != nil {
		t.Fatal(err)
	}
	return op
}

// backUp makes a backup and returns it when it is completed.
func (a *appliance) backUp(t testing.TB, database string) model.Backup {
	t.Helper()
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), database)
	if err != nil {
		t.Fatalf("backup: %v", err)
	}
	testenv.Within(t, time.Minute, "the end of the backup", func() bool {
		b, err = a.Recovery.BackupGet(a.call(model.ActionBackupGet), database, b.ID)
		return err != nil || b.Status == model.BackupCompleted || b.Status == model.BackupFailed
	})
	if err != nil || b.Status != model.BackupCompleted {
		t.Fatalf("backup: %+v, %v", b, err)
	}
	a.awaitIdle(t)
	return b
}

// unpackByHand does a restore's steps up to the switch: it builds and recovers generation 2, and leaves nothing
// running.
func (a *appliance) unpackByHand(t *testing.T, db model.Database) model.DatabaseOperation {
	t.Helper()
	b := a.backUp(t, db.ID)
	a.changeRows(t, db)
	op := a.beginByHand(t, db, model.OperationRestore, model.DatabaseRestoring, 2)
	plan, err := a.Recovery.PlanBackup(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.Unpack(t.Context(), plan, a.Databases.DataDirectory(db.ID, op.Generation), backup.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.PrepareGeneration(t.Context(), db, op, &plan); err != nil {
		t.Fatal(err)
	}
	return op
}

// changeRows makes generation 1 differ from its backup: the sum stays 1.
func (a *appliance) changeRows(t *testing.T, db model.Database) {
	t.Helper()
	c, err := a.Databases.ConnectionOf(db, true)
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "insert into kept values (5), (-5)")
}

// switchByHand makes another generation the current one, and starts nothing.
func (a *appliance) switchByHand(t *testing.T, db model.Database, generation int) model.Database {
	t.Helper()
	if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
		t.Fatal(err)
	}
	next, err := a.Recovery.RecordSwitch(db.ID, model.Served{Generation: generation})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// serveByHand starts a generation, and commits a client's row in it.
func (a *appliance) serveByHand(t *testing.T, db model.Database) {
	t.Helper()
	if _, err := a.Databases.StartInstance(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	c, err := a.Databases.ConnectionOf(db, true)
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "insert into kept values (1000)")
}

// switched checks that a database has the rows of a generation, and that the operation that replaced the other one has
// ended.
func switched(generation, replaced int, rows string) func(*testing.T, *appliance, model.Database, databases.Connection) {
	return func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
		t.Helper()
		if db.Status != model.DatabaseAvailable || db.Operation != "" || db.Generation != generation ||
			db.Replaced == nil || db.Replaced.Generation != replaced {
			t.Errorf("%s, operation %q, generation %d, replaced %+v", db.Status, db.Operation, db.Generation, db.Replaced)
		}
		if got := answer[string](t, c, "select string_agg(n::text, ' ' order by n) from kept"); got != rows {
			t.Errorf("the rows %s, not %s", got, rows)
		}
		for _, op := range a.operations(t, db.ID) {
			if op.Phase == byHand && op.Status != model.OperationCompleted {
				t.Errorf("operation %s is %s: %q", op.Type, op.Status, op.Error)
			}
		}
	}
}

func crashes() []crash {
	return []crash{
		{
			"creating, nothing but the record",
			func(t *testing.T, a *appliance, db model.Database) {
				stopAndRemove(t, a, db)
				a.edit(t, db.ID, func(d *model.Database) { d.Status = model.DatabaseCreating })
			}, gone,
		},
		{
			"creating, all but the last commit",
			func(t *testing.T, a *appliance, db model.Database) {
				a.edit(t, db.ID, func(d *model.Database) { d.Status = model.DatabaseCreating })
			}, gone,
		},
		{
			"deleting, the instance runs",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginByHand(t, db, model.OperationDelete, model.DatabaseDeleting, 0)
			}, inTrash,
		},
		{
			"deleting, the instance is stopped",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginByHand(t, db, model.OperationDelete, model.DatabaseDeleting, 0)
				if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
					t.Fatal(err)
				}
			}, inTrash,
		},
		{
			"restarting, the instance is stopped",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginByHand(t, db, model.OperationRestart, model.DatabaseRestarting, 0)
				if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
					t.Fatal(err)
				}
			}, before,
		},
		{
			"restoring, half unpacked",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.beginByHand(t, db, model.OperationRestore, model.DatabaseRestoring, 2)
				writeFile(t, filepath.Join(a.Databases.DataDirectory(db.ID, op.Generation), "base", "1", "1259"), "half")
			}, before,
		},
		{
			"restoring, cancelled, half unpacked",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.beginByHand(t, db, model.OperationRestore, model.DatabaseRestoring, 2)
				writeFile(t, filepath.Join(a.Databases.DataDirectory(db.ID, op.Generation), "base", "1", "1259"), "half")
				ctx, gone := context.WithCancel(t.Context())
				gone() // nothing runs that could end
				if _, err := a.Databases.OperationCancel(ctx, a.call(model.ActionOperationCancel), op.ID); err != nil {
					t.Fatal(err)
				}
				if err := a.Databases.BeginSwitching(op.ID); err == nil {
					t.Error("a cancelled restore switches")
				}
			}, func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				undamaged(t, db, c)
				if op := a.operations(t, db.ID)[0]; op.Status != model.OperationCancelled || op.CancelledBy == nil || op.CompletedAt == nil {
					t.Errorf("%+v", op)
				}
			},
		},
		{
			"restoring, recovering on the private socket",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.unpackByHand(t, db)
				next := db
				next.Generation = op.Generation
				spec, err := a.Databases.Spec(t.Context(), next)
				if err != nil {
					t.Fatal(err)
				}
				port, err := postgres.PrivatePort(a.Databases.SocketDir)
				if err != nil {
					t.Fatal(err)
				}
				spec.ID, spec.Config = op.ID, postgres.Config{Port: port, SocketDir: a.Databases.SocketDir}
				if err := a.Databases.Instances.Start(t.Context(), spec); err != nil {
					t.Fatal(err)
				}
			}, before,
		},
		{
			"restoring, neither runs",
			func(t *testing.T, a *appliance, db model.Database) {
				a.unpackByHand(t, db)
				if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
					t.Fatal(err)
				}
			}, before,
		},
		{
			"restored and committed, not started",
			func(t *testing.T, a *appliance, db model.Database) {
				a.switchByHand(t, db, a.unpackByHand(t, db).Generation)
			}, switched(2, 1, "1"),
		},
		{
			"restored and committed, a client has written",
			func(t *testing.T, a *appliance, db model.Database) {
				a.serveByHand(t, a.switchByHand(t, db, a.unpackByHand(t, db).Generation))
			}, switched(2, 1, "1 1000"),
		},
		{
			"restored and committed, taken back, a client has written",
			func(t *testing.T, a *appliance, db model.Database) {
				a.switchByHand(t, db, a.unpackByHand(t, db).Generation)
				if err := a.Recovery.RevertSwitch(t.Context(), db); err != nil {
					t.Fatal(err)
				}
				a.serveByHand(t, db)
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				if n := answer[int](t, c, "select sum(n) from kept"); n != 1001 {
					t.Errorf("the rows sum up to %d, not 1001", n)
				}
				run(t, c, "delete from kept where n = 1000")
				before(t, a, db, c)
			},
		},
		{
			"restored and committed, the generation before the last is left",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.unpackByHand(t, db)
				if err := a.Recovery.SwitchGeneration(t.Context(), db, op); err != nil {
					t.Fatal(err)
				}
				a.edit(t, db.ID, func(d *model.Database) { d.Begun = 6 })
				writeFile(t, filepath.Join(a.Databases.DataDirectory(db.ID, 6), "PG_VERSION"), "15\n") // it was replaced once
				writeFile(t, filepath.Join(a.Databases.DataDirectory(db.ID, 7), "PG_VERSION"), "15\n") // no record knows it
				writeFile(t, filepath.Join(a.Databases.DatabaseDirectory(db.ID), "notes.txt"), "not a generation")
				writeFile(t, filepath.Join(a.Databases.DatabaseDirectory(db.ID), "clone-1.new"), "a trial of the file system") // removed
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				if db.Generation != 2 || db.Replaced == nil || db.Replaced.Generation != 1 {
					t.Errorf("generation %d, replaced %+v", db.Generation, db.Replaced)
				}
				if n := answer[int](t, c, "select count(*) from kept"); n != 1 {
					t.Errorf("%d rows, not the backup's one", n)
				}
				same(t, "generations", below(t, a.Databases.DatabaseDirectory(db.ID), 1), generations(a, db))
				same(t, "quarantined", quarantineOf(t, a, db), []string{"7", "notes.txt"})
			},
		},
		{
			"undone and committed, a client has written",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.unpackByHand(t, db)
				if err := a.Recovery.SwitchGeneration(t.Context(), db, op); err != nil {
					t.Fatal(err)
				}
				a.beginByHand(t, db, model.OperationRestore, model.DatabaseRestoring, 1)
				a.serveByHand(t, a.switchByHand(t, db, 1))
			}, switched(1, 2, "-5 1 5 1000"),
		},
		{
			"undoing, neither runs",
			func(t *testing.T, a *appliance, db model.Database) {
				op := a.unpackByHand(t, db)
				if err := a.Recovery.SwitchGeneration(t.Context(), db, op); err != nil {
					t.Fatal(err)
				}
				a.beginByHand(t, db, model.OperationRestore, model.DatabaseRestoring, 1)
				if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				if n := answer[int](t, c, "select count(*) from kept"); n != 1 || db.Generation != 2 {
					t.Errorf("%d rows in generation %d, not the restored row in 2", n, db.Generation)
				}
				a.undo(t, db.ID) // the interrupted operation can be repeated
				if n := answer[int](t, c, "select count(*) from kept"); n != 3 {
					t.Errorf("%d rows after the undo, not 3", n)
				}
			},
		},
		{
			"backup running",
			func(t *testing.T, a *appliance, db model.Database) {
				b := model.Backup{
					ID: a.Core.NewID(model.ResourceBackup), Organization: db.Organization, Database: db.ID,
					Type: model.BackupManual, Status: model.BackupRunning, Version: db.Version, StartedAt: a.Core.Clock(),
				}
				if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Backups().Insert(b) }); err != nil {
					t.Fatal(err)
				}
				a.beginByHand(t, db, model.OperationBackup, model.DatabaseAvailable, 0)
				if _, err := a.Recovery.Repository(db.ID); err != nil {
					t.Fatal(err)
				}
				dir := filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository")
				writeFile(t, filepath.Join(dir, "packs", "00000007-000000.pack"), "half a pack")
				writeFile(t, filepath.Join(dir, "manifests", "bkp_half.manifest.new"), "half a manifest")
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				list, err := a.Recovery.BackupList(a.call(model.ActionBackupList), db.ID, recovery.BackupFilter{}, core.Page{})
				if err != nil || len(list.Items) != 1 {
					t.Fatalf("backups: %+v, %v", list, err)
				}
				if b := list.Items[0]; b.Status != model.BackupFailed || b.Error == "" || b.CompletedAt == nil {
					t.Errorf("the backup: %+v", b)
				}
				if left := a.backupFiles(t, db.ID); len(left) > 0 {
					t.Errorf("left of the interrupted backup: %v", left)
				}
				a.backUp(t, db.ID) // the next backup is not blocked
			},
		},
		{
			"backup complete, its end not recorded",
			func(t *testing.T, a *appliance, db model.Database) { a.unrecordedBackup(t, db, true) },
			oneBackup,
		},
		{
			"backup complete, without a record",
			func(t *testing.T, a *appliance, db model.Database) { a.unrecordedBackup(t, db, false) },
			oneBackup,
		},
		{
			"backup with a pending deletion",
			func(t *testing.T, a *appliance, db model.Database) {
				if err := a.Recovery.MarkForDeletion(a.call(model.ActionBackupDelete), db.ID, a.backUp(t, db.ID).ID); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				if all, left := a.backups(t, db.ID), a.backupFiles(t, db.ID); len(all) > 0 || len(left) > 0 {
					t.Errorf("left of the deleted backup: %+v %v", all, left)
				}
			},
		},
		{
			"new password recorded, not yet the role's",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginChange(t, model.ActionDatabaseRotatePassword, db.ID, func(d *model.Database) {
					a.sealPasswords(d, model.NewSecret("the owner's new one"), model.NewSecret("the reader's new one"))
					d.PendingChange.Terminate = true
				})
				a.openSession(t, db)
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				a.noSessions(t, db)
				if c.Password.Reveal() != "the owner's new one" {
					t.Error("the record lost the new password")
				}
				before(t, a, db, c)
				a.checkEnded(t, db.ID, model.ActionDatabaseRotatePassword, model.OutcomeSuccess)
			},
		},
		{
			"allow-list recorded, not yet in force",
			func(t *testing.T, a *appliance, db model.Database) {
				allow, err := model.ParseAllowlist("entries", []string{"10.0.0.0/8"})
				if err != nil {
					t.Fatal(err)
				}
				a.beginChange(t, model.ActionAllowlistSet, db.ID, func(d *model.Database) {
					now := a.Core.Clock()
					d.Allowlist, d.AllowlistUpdatedAt, d.UpdatedAt = allow, now, now
				})
				a.openSession(t, db)
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				refused(t, c)
				a.noSessions(t, db)
				a.checkEnded(t, db.ID, model.ActionAllowlistSet, model.OutcomeSuccess)
				if _, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"}); err != nil {
					t.Fatal(err)
				}
				before(t, a, db, c)
			},
		},
		{
			"new name recorded, not yet the server's",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginChange(t, model.ActionDatabaseUpdate, db.ID, func(d *model.Database) { d.Name = "store" })
				a.openSession(t, db)
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				if c.Database != "store" {
					t.Errorf("the database is %s", c.Database)
				}
				a.noSessions(t, db)
				before(t, a, db, c)
				a.checkEnded(t, db.ID, model.ActionDatabaseUpdate, model.OutcomeSuccess)
			},
		},
		{
			"settings recorded, not yet in force",
			func(t *testing.T, a *appliance, db model.Database) { a.beginSettings(t, db, "work_mem", "17MB") },
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				if got := answer[string](t, c, "show work_mem"); got != "17MB" {
					t.Errorf("work_mem is %s", got)
				}
				a.checkEnded(t, db.ID, model.ActionDatabaseSettings, model.OutcomeSuccess)
			},
		},
		{
			"settings recorded with which it does not start",
			func(t *testing.T, a *appliance, db model.Database) { a.beginSettings(t, db, "work_mem", "plenty") },
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				a.checkEnded(t, db.ID, model.ActionDatabaseSettings, model.OutcomeError)
				if record, err := a.Databases.Record(db.ID); err != nil || len(record.Settings) > 0 {
					t.Errorf("recorded %v, %v", record.Settings, err)
				}
			},
		},
		{
			"a client's settings recorded, not yet in force",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginChange(t, model.ActionSettingsUpdate, db.ID, func(d *model.Database) { d.OwnSettings = map[string]string{"work_mem": "17MB"} })
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				if got := answer[string](t, c, "show work_mem"); got != "17MB" {
					t.Errorf("work_mem is %s", got)
				}
				a.checkEnded(t, db.ID, model.ActionSettingsUpdate, model.OutcomeSuccess)
			},
		},
		{
			"a client's settings recorded with which it does not start",
			func(t *testing.T, a *appliance, db model.Database) {
				a.beginChange(t, model.ActionSettingsUpdate, db.ID, func(d *model.Database) { d.OwnSettings = map[string]string{"work_mem": "plenty"} })
			},
			func(t *testing.T, a *appliance, db model.Database, c databases.Connection) {
				before(t, a, db, c)
				a.checkEnded(t, db.ID, model.ActionSettingsUpdate, model.OutcomeError)
				if record, err := a.Databases.Record(db.ID); err != nil || len(record.OwnSettings) > 0 {
					t.Errorf("recorded %v, %v", record.OwnSettings, err)
				}
			},
		},
		{
			"no record, the instance runs",
			func(t *testing.T, a *appliance, db model.Database) {
				if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Delete(db.ID) }); err != nil {
					t.Fatal(err)
				}
			}, quarantined("1"),
		},
		{
			"no record, a later generation's instance runs",
			func(t *testing.T, a *appliance, db model.Database) {
				if err := a.Databases.StopInstance(t.Context(), db.ID); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(a.Databases.DataDirectory(db.ID, 1), a.Databases.DataDirectory(db.ID, 4)); err != nil {
					t.Fatal(err)
				}
				db.Generation = 4
				if _, err := a.Databases.StartInstance(t.Context(), db); err != nil {
					t.Fatal(err)
				}
				if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Delete(db.ID) }); err != nil {
					t.Fatal(err)
				}
			}, quarantined("4"),
		},
		{
			"nothing under way",
			func(*testing.T, *appliance, model.Database) {},
			before,
		},
	}
}

// openSession opens a session of the owner, with the password in the record db.
func (a *appliance) openSession(t testing.TB, db model.Database) {
	t.Helper()
	c, err := a.Databases.ConnectionOf(db, true)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, c)
}

// noSessions checks that no session remains open.
func (a *appliance) noSessions(t testing.TB, db model.Database) {
	t.Helper()
	sessions := -1
	conn, err := a.Databases.Instances.Connect(t.Context(), db.ID, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	err = conn.QueryRow(t.Context(), "select count(*) from pg_stat_activity where usename = $1", db.Owner).Scan(&sessions)
	if err != nil || sessions != 0 {
		t.Errorf("%d sessions are open, %v", sessions, err)
	}
}

func stopAndRemove(t *testing.T, a *appliance, db model.Database) {
	t.Helper()
	if err := errors.Join(a.Databases.StopInstance(t.Context(), db.ID), os.RemoveAll(a.Databases.DatabaseDirectory(db.ID))); err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// beginSettings records a setting without changing the instance.
func (a *appliance) beginSettings(t testing.TB, db model.Database, name, value string) {
	t.Helper()
	a.beginChange(t, model.ActionDatabaseSettings, db.ID, func(d *model.Database) {
		d.Settings = map[string]string{name: value}
	})
}

// checkEnded checks that an interrupted change has ended, and is in the audit log as the action of its caller.
func (a *appliance) checkEnded(t testing.TB, database string, action model.Action, want model.Outcome) {
	t.Helper()
	if db, err := a.Databases.Record(database); err != nil || db.PendingChange != nil || db.AllowlistAppliedAt.Before(db.AllowlistUpdatedAt) {
		t.Errorf("pending change: %+v, %v; the allow-list of %v came into force at %v", db.PendingChange, err, db.AllowlistUpdatedAt, db.AllowlistAppliedAt)
	}
	call := a.call(model.ActionAuditList)
	testenv.Eventually(t, "the entry in the audit log", func() bool {
		entries, _, err := a.Core.AuditList(call, core.AuditFilter{}, 1, core.MaxLimit)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(entries, func(entry model.AuditEntry) bool {
			return entry.Action == action && entry.Outcome == want && entry.Actor == call.Actor
		})
	})
}

// unrecordedBackup makes a backup whose end is not recorded; if known is false, without any record, as after a restore
// of an older holdfast.db.
func (a *appliance) unrecordedBackup(t testing.TB, db model.Database, known bool) {
	t.Helper()
	b := model.Backup{
		ID: a.Core.NewID(model.ResourceBackup), Organization: db.Organization, Database: db.ID, Generation: db.Generation,
		Type: model.BackupManual, Status: model.BackupRunning, Version: db.Version, StartedAt: a.Core.Clock(),
	}
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Backups().Insert(b) }); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Recovery.TakeBackup(t.Context(), db, b, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
	if known {
		return
	}
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.Backups().Delete(b.ID) }); err != nil {
		t.Fatal(err)
	}
}

// orphanBlob stores a blob that no record refers to.
func (a *appliance) orphanBlob(t testing.TB, text string) blobstore.Ref {
	t.Helper()
	w, err := a.Core.Blobs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	ref, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func (a *appliance) undo(t testing.TB, database string) {
	t.Helper()
	op, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), database)
	if err != nil {
		t.Fatalf("undo: %v", err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
}

func (a *appliance) restore(t testing.TB, database, backup string) {
	t.Helper()
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), database, backup, nil)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
}

// awaitOperation waits until an operation has ended, and returns its error.
func (a *appliance) awaitOperation(t testing.TB, op model.DatabaseOperation, want model.OperationStatus) string {
	t.Helper()
	testenv.Within(t, time.Minute, "the end of the "+string(op.Type), func() bool {
		err := a.Core.Meta.View(func(tx *meta.Tx) (err error) {
			op, err = tx.Operations().Get(op.ID)
			return err
		})
		return err == nil && (op.Status == model.OperationCompleted || op.Status == model.OperationFailed)
	})
	if op.Status != want {
		t.Fatalf("the %s is %s, not %s: %s", op.Type, op.Status, want, op.Error)
	}
	a.awaitIdle(t)
	return op.Error
}

// The next start recovers every state that a crash can leave, all of them together in one data directory.
func TestRecover(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cases := crashes()
	cfg := testConfig(t, newDataDir(t))
	cfg.FirstPort, cfg.LastPort = testenv.Ports(t, 3*len(cases))
	fillPool(t, cfg, len(cases))
	a := startEngineOn(t, cfg)
	left := make([]model.Database, len(cases))
	for n := range cases {
		db, connection := a.createDatabase(t, fmt.Sprintf("d%d", n))
		run(t, connection, "create table kept as select 1 as n")
		left[n] = db.Database
	}
	for n, c := range cases {
		c.leave(t, a, left[n])
	}
	orphan := a.orphanBlob(t, "an upload without its row")
	discarded := a.orphanBlob(t, "a deleted object")
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.DiscardBlob(string(discarded)) }); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(cfg.DataDir, "instances", "stray.txt"), "not a directory")
	writeFile(t, filepath.Join(cfg.DataDir, "instances", "db_nobody", "1", "PG_VERSION"), "15\n")
	writeFile(t, filepath.Join(cfg.DataDir, "backups", "db_nobody", "repository", "packs", "00000001-000000.pack"), "nobody's")
	a.abandon(t)

	b := a.reopen(t)
	b.awaitBlobs(t, orphan, discarded)
	for n, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			now, err := b.Databases.Record(left[n].ID)
			var connection databases.Connection
			if err != nil {
				now = left[n]
			} else if connection, err = b.Databases.ConnectionOf(now, true); err != nil {
				t.Fatal(err)
			}
			if now.Port != left[n].Port {
				t.Errorf("moved from port %d to %d: something was left on it", left[n].Port, now.Port)
			}
			c.check(t, b, now, connection)
		})
	}
	b.checkTidy(t)
	if v, err := b.Core.AuditVerify(b.call(model.ActionAuditVerify)); err != nil || len(v.Faults) > 0 {
		t.Errorf("the audit chain: %v", err)
	}
}

// awaitBlobs waits until the blobs are gone.
func (a *appliance) awaitBlobs(t testing.TB, refs ...blobstore.Ref) {
	t.Helper()
	for _, ref := range refs {
		testenv.Within(t, 30*time.Second, "the end of a blob without a record", func() bool {
			r, err := a.Core.Blobs.Open(t.Context(), ref)
			if err == nil {
				r.Close()
			}
			return err != nil
		})
	}
}

// An interrupted removal from the trash continues, and a half-removed database cannot be restored.
func TestRecoverPurge(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.Warm = 3 // one is being built when the engine is abandoned
	a := startEngineOn(t, cfg)
	db, _ := a.createDatabase(t, "shop")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	// A directory that cannot be emptied simulates the moment of death.
	locked := filepath.Join(a.Databases.DataDirectory(db.ID, 1), "base")
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err == nil {
		t.Fatal("the trash was emptied in spite of a file that cannot be removed")
	}
	if err := os.Chmod(locked, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); model.CodeOf(err) != model.CodeNotFound {
		t.Errorf("a half removed database was brought back: %v", err)
	}
	a.abandon(t)
	b := a.reopen(t)
	testenv.Within(t, 30*time.Second, "the end of the files", func() bool {
		_, err := os.Lstat(b.Databases.DatabaseDirectory(db.ID))
		return errors.Is(err, os.ErrNotExist)
	})
	testenv.Within(t, 30*time.Second, "the end of the record", func() bool {
		_, err := b.Databases.Record(db.ID)
		return errors.Is(err, meta.ErrNotFound)
	})
	b.checkTidy(t)
}

// A database that cannot be recovered is marked as failed and left alone; the others start.
func TestUnrecoverableDatabase(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	broken, _ := a.createDatabase(t, "broken")
	sound, c := a.createDatabase(t, "sound")
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	files := openEngine(t, a.cfg)
	files.edit(t, broken.ID, func(d *model.Database) { d.Status = model.DatabaseCreating })
	if err := files.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	inTheWay := filepath.Join(a.Databases.DataDirectory(broken.ID, 1), "postmaster.pid")
	if err := os.Mkdir(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	b := startEngineOn(t, a.cfg)
	b.awaitStatus(t, sound.ID, model.DatabaseAvailable, time.Minute)
	connect(t, c)
	if status, reason := b.status(t, broken.ID); status != model.DatabaseFailed || reason == "" {
		t.Errorf("%s: %q", status, reason)
	}
	if _, err := b.Databases.Delete(t.Context(), b.call(model.ActionDatabaseDelete), broken.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("delete: %v", err)
	}
	if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	d := startEngineOn(t, a.cfg)
	d.awaitStatus(t, sound.ID, model.DatabaseAvailable, time.Minute)
	if _, err := d.Databases.Record(broken.ID); err == nil {
		t.Error("what was not made is still there")
	}
}

// Without its metadata the data directory's files are orphans, and a start would remove every database; without its key
// no password can be decrypted.
func TestDataDirectoryWithAFileLost(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, lost := range [][]string{
		{core.MetadataFile},
		{core.KeyFile},
		{core.MetadataFile, core.KeyFile},
		{core.MetadataFile, core.KeyFile, "blobs"},
		{core.MetadataFile, core.KeyFile, "blobs", "instances"},
	} {
		aside := t.TempDir()
		for _, name := range lost {
			if err := os.Rename(filepath.Join(a.cfg.DataDir, name), filepath.Join(aside, name)); err != nil {
				t.Fatal(err)
			}
		}
		e, err := Open(a.cfg)
		if err == nil {
			t.Fatalf("opened without %q: %v", lost, e.Close(context.WithoutCancel(t.Context())))
		}
		for _, name := range lost[:min(2, len(lost))] {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("without %q the message does not name %s: %v", lost, name, err)
			}
		}
		for _, name := range lost {
			if err := os.Rename(filepath.Join(aside, name), filepath.Join(a.cfg.DataDir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b := a.reopen(t)
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	before(t, b, db.Database, c)
}
