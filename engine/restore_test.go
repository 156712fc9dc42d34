package engine

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// refused checks that pg_hba.conf lets nobody in from this address.
func refused(t testing.TB, c databases.Connection) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err == nil {
		_ = conn.Close(t.Context())
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "28000" {
		t.Errorf("connecting from an address that is not allowed: %v", err)
	}
}

func TestRestoreUndoRestore(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	// Settings that must be at least as high in recovery as on the server.
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{
		"max_connections": "80", "max_prepared_transactions": "5", "max_locks_per_transaction": "128",
	}); err != nil {
		t.Fatal(err)
	}
	run(t, c, "create table t as select n, md5(n::text) as text from generate_series(1, 5000) n")
	run(t, c, "create table prepared (n int)")
	conn := connect(t, c)
	for _, sql := range []string{"begin", "insert into prepared values (1)", "prepare transaction 'open'"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	const rows = "select count(*) || ' ' || coalesce(sum(hashtext(text)), 0) from t"
	then := answer[string](t, c, rows)
	b := a.backUp(t, db.ID)
	run(t, c, "delete from t where n % 2 = 0")
	run(t, c, "commit prepared 'open'")
	// The restored data has a prepared transaction, for which the settings of now have no place.
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"max_prepared_transactions": "0"}); err != nil {
		t.Fatal(err)
	}
	now := answer[string](t, c, rows)
	rotation, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	c = rotation.Connection // the current password applies to every generation

	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"restore", func() { a.restore(t, db.ID, b.ID) }, then},
		{"undo", func() { a.undo(t, db.ID) }, now},
		{"undo of the undo", func() { a.undo(t, db.ID) }, then},
		{"restore again", func() { a.restore(t, db.ID, b.ID) }, then},
	} {
		step.do()
		if got := answer[string](t, c, rows); got != step.want {
			t.Errorf("after %s: %s, not %s", step.name, got, step.want)
		}
		if view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID); err != nil || view.Port != db.Port || view.Status != model.DatabaseAvailable {
			t.Errorf("after %s: %+v, %v", step.name, view, err)
		}
		a.checkTidy(t)
	}
	run(t, c, "commit prepared 'open'") // it was open then
	if n := answer[int](t, c, "select count(*) from prepared"); n != 1 {
		t.Errorf("%d rows of the prepared transaction", n)
	}
	// The data that the last restore replaced is removed when it expires.
	a.edit(t, db.ID, func(d *model.Database) { d.Replaced.ExpiresAt = a.Core.Clock() })
	if _, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), db.ID); model.CodeOf(err) != model.CodeForbidden {
		t.Errorf("undo after its time: %v", err)
	}
	if err := a.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.checkTidy(t)
}

// A restore that fails leaves the database unchanged, and running throughout.
func TestFailingRestore(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select generate_series(1, 100000) n")
	b := a.backUp(t, db.ID)
	run(t, c, "delete from t where n > 7")
	flipByte(t, a.packOf(t, db.ID))
	session, pid := connect(t, c), a.pid(t, db.ID)
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	message := a.awaitOperation(t, op, model.OperationFailed)
	if !strings.Contains(message, "damaged") {
		t.Errorf("the message does not say that the backup is damaged: %s", message)
	}
	var n int
	if err := session.QueryRow(t.Context(), "select count(*) from t").Scan(&n); err != nil || n != 7 {
		t.Errorf("the session from before: %d rows, %v", n, err)
	}
	if now := a.pid(t, db.ID); now != pid {
		t.Error("the instance was restarted")
	}
	record, err := a.Databases.Record(db.ID)
	if err != nil || record.Generation != 1 || record.Replaced != nil {
		t.Errorf("the record: %+v, %v", record, err)
	}
	if view, err := a.Databases.View(record); err != nil || view.FailedRestore == nil || view.FailedRestore.Error != message {
		t.Errorf("what a client sees of the failure: %+v, %v", view.FailedRestore, err)
	}
	flipByte(t, a.packOf(t, db.ID)) // repaired
	a.backUp(t, db.ID)
	if view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID); err != nil || view.FailedRestore == nil {
		t.Errorf("a backup makes nobody restore again: %+v, %v", view.FailedRestore, err)
	}
	if op, err = a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil); err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	if view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID); err != nil || view.FailedRestore != nil {
		t.Errorf("after one that succeeded: %+v, %v", view.FailedRestore, err)
	}
	a.checkTidy(t)
}

// If neither the restored nor the old data can be started, the operation ends anyway: otherwise it would block every
// other operation on the database.
func TestRestoreThatCannotBeUndone(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	b := a.backUp(t, db.ID)
	// This machine does not have the address: an instance that listens only on its private socket starts, the database
	// itself does not.
	listen := a.Engine.Core.Config.Listen
	a.Engine.Core.Config.Listen = []string{"192.0.2.1"}
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationFailed)
	if record, err := a.Databases.Record(db.ID); err != nil || record.Operation != "" || record.Status != model.DatabaseAvailable || record.Generation != 1 {
		t.Errorf("the record: %+v, %v", record, err)
	}
	a.awaitStatus(t, db.ID, model.DatabaseFailed, 30*time.Second)
	if _, err := os.Lstat(a.Databases.DataDirectory(db.ID, 2)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the restored files are left: %v", err)
	}
	a.Engine.Core.Config.Listen = listen
	a.abandon(t)
	next := a.reopen(t)
	next.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
}

func TestTwoRestoresAtOnce(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	b := a.backUp(t, db.ID)
	first, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, act := range map[string]func() error{
		"restore": func() error {
			_, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
			return err
		},
		"backup": func() error {
			_, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
			return err
		},
		"delete of its backup": func() error { return a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, b.ID) },
		"undo": func() error {
			_, err := a.Recovery.RecoveryUndo(a.call(model.ActionRecoveryUndo), db.ID)
			return err
		},
		"restart": func() error {
			_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
			return err
		},
	} {
		if err := act(); model.CodeOf(err) != model.CodeConflict {
			t.Errorf("%s during a restore: %v", name, err)
		}
	}
	a.awaitOperation(t, first, model.OperationCompleted)
	a.checkTidy(t)
}

func TestDeleteDuringBackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, repeat(md5(n::text), 8) as text from generate_series(1, 200000) n")
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Catch(t, time.Minute, "the beginning of the copy", func() bool {
		now, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, b.ID)
		return err == nil && now.Status == model.BackupRunning && now.Progress > 0
	})
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatalf("delete during a backup: %v", err)
	}
	ended := a.backups(t, db.ID)
	if len(ended) != 1 || ended[0].Status != model.BackupFailed || !strings.Contains(ended[0].Error, "deleted") {
		t.Errorf("the backup: %+v", ended)
	}
	a.checkTidy(t)
	if files := a.backupFiles(t, db.ID); len(files) > 0 {
		t.Errorf("left of the backup: %v", files)
	}
}

func (a *appliance) backups(t testing.TB, database string) []model.Backup {
	t.Helper()
	var all []model.Backup
	err := a.Core.Meta.View(func(tx *meta.Tx) (err error) {
		all, err = core.AllUnder(tx.Backups(), database)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// backupFiles lists the files of a database's backups, except the WAL.
func (a *appliance) backupFiles(t testing.TB, database string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Join(a.Recovery.BackupDirectory(database), "repository"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// packOf returns the largest pack of a database's backups.
func (a *appliance) packOf(t testing.TB, database string) (pack string) {
	t.Helper()
	largest := int64(0)
	for _, path := range a.backupFiles(t, database) {
		if info, err := os.Stat(path); err == nil && strings.HasSuffix(path, ".pack") && info.Size() > largest {
			pack, largest = path, info.Size()
		}
	}
	if pack == "" {
		t.Fatal("the backup has no pack")
	}
	return pack
}

// flipByte flips one bit in the middle of a file.
func flipByte(t testing.TB, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], info.Size()/2); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

// The commit that removes the record of a database that was being restored into also ends the operation: no crash
// leaves it running.
func TestForgottenDatabaseEndsItsOperation(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	source, _ := a.createDatabase(t, "shop")
	call := a.call(model.ActionBackupRestore)
	db := a.Databases.NewDatabase(call, databases.NewDatabase{Project: a.project, Name: "copy", User: model.DefaultOwner, Password: model.NewSecret("long enough for it")})
	op := a.Databases.NewOperation(source.Database, model.OperationRestore, "checking")
	op.NewDatabase, db.Operation = db.ID, op.ID
	db, release, err := a.Databases.ClaimDatabase(call, db, "the creation", func(insert func(*meta.Tx) error) error {
		return a.Core.Meta.Update(func(tx *meta.Tx) error { return errors.Join(insert(tx), tx.Operations().Insert(op)) })
	})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := a.Databases.ForgetDatabase(t.Context(), call, db, core.ErrInterrupted, nil); err != nil {
		t.Fatal(err)
	}
	if ended := a.operations(t, source.ID); len(ended) != 1 || ended[0].Status != model.OperationFailed {
		t.Errorf("operations: %+v", ended)
	}
}

// A backup waits for the archive, which accepts nothing; a restore does not wait for the backup, but cancels it.
func TestRestoreEndsBackup(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	b := a.backUp(t, db.ID)
	for _, restore := range []func() (model.DatabaseOperation, error){
		func() (model.DatabaseOperation, error) {
			return a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("shop-before"))
		},
		func() (model.DatabaseOperation, error) {
			return a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, nil)
		},
	} {
		session := a.receiverSession(t, db.ID)
		if err := syscall.Kill(session, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		waiting, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
		if err != nil {
			t.Fatal(err)
		}
		op, err := restore()
		if err := syscall.Kill(session, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if ended, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, waiting.ID); err != nil || ended.Status != model.BackupFailed || !ended.Cut {
			t.Errorf("the backup that waited: %+v, %v", ended, err)
		}
		a.awaitOperation(t, op, model.OperationCompleted)
	}
}

// receiverSession returns the server process that tells the archive's receiver the WAL position.
func (a *appliance) receiverSession(t *testing.T, id string) (pid int) {
	t.Helper()
	conn, err := a.Databases.Instances.Connect(t.Context(), id, databases.Maintenance)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	testenv.Within(t, time.Minute, "the archive's session", func() bool {
		return conn.QueryRow(t.Context(), "select pid from pg_stat_activity where query like '%pg_current_wal_flush_lsn%' and pid <> pg_backend_pid()").Scan(&pid) == nil
	})
	return pid
}

// A restore that a client cancels is logged, but not as an error of the appliance.
func TestCancelledRestoreIsNoError(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cfg := testConfig(t, newDataDir(t))
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	commitStepInto(t, c)
	b := a.backUp(t, db.ID)
	beside := "beside"
	for _, into := range []*string{nil, &beside} {
		op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, into)
		if err != nil {
			t.Fatal(err)
		}
		if op, err = a.Databases.OperationCancel(t.Context(), a.call(model.ActionOperationCancel), op.ID); err != nil || op.Status != model.OperationCancelled {
			t.Fatalf("%+v, %v", op, err)
		}
		a.awaitIdle(t)
	}
	text, err := os.ReadFile(log.Name())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); strings.Contains(got, "level=ERROR") || strings.Count(got, "cancelled by test") != 2 {
		t.Errorf("the log:\n%s", got)
	}
}
