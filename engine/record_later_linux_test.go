package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// fillMetadataDisk makes every commit of metadata fail as on a full disk until free is called.
func (a *appliance) fillMetadataDisk(t *testing.T) (free func()) {
	t.Helper()
	for _, size := range []int{1 << 20, 0, 0} { // free pages: the file need not grow, which /dev/full cannot
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return tx.PutSetting("filler", make([]byte, size)) }); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(a.cfg.DataDir, "holdfast.db")
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if target, linkErr := os.Readlink("/proc/self/fd/" + entry.Name()); err != nil || linkErr != nil || target != path {
			continue
		}
		kept, err := syscall.Dup(fd)
		if err == nil {
			err = syscall.Dup3(int(full.Fd()), fd, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := errors.Join(syscall.Dup3(kept, fd, syscall.O_CLOEXEC), syscall.Close(kept)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("the metadata's descriptor is not found")
	return nil
}

// awaitRecordedEnd waits until an operation of a database is no longer running.
func (a *appliance) awaitRecordedEnd(t *testing.T, op model.DatabaseOperation) {
	t.Helper()
	testenv.Eventually(t, "the end of the "+string(op.Type), func() bool {
		for _, now := range a.operations(t, op.Database) {
			if now.ID == op.ID {
				return now.Status.Final()
			}
		}
		return false
	})
}

// The end of an export that failed on a full disk is recorded once there is space.
func TestFailedExportOnAFullDisk(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, exporting(t))
	db, owner := a.createDatabase(t, "shop")
	holder := holdTable(t, owner)
	x := a.mustExport(t, db.ID, "")
	a.awaitExportOf(t, db.ID, "", x.ID, model.ExportRunning)
	testenv.Eventually(t, "the dump waits", func() bool {
		return answer[int](t, owner, "select count(*) from pg_locks where not granted") > 0
	})
	free := a.fillMetadataDisk(t)
	op := a.operations(t, db.ID)[0]
	a.Core.Cancels.Cancel(op.ID, errors.New("the dump ended"))
	free()
	a.awaitRecordedEnd(t, op)
	a.awaitExportOf(t, db.ID, "", x.ID, model.ExportPending)
	if err := holder.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The end of a verification that was abandoned on a full disk is recorded once there is space.
func TestAbandonedVerificationOnAFullDisk(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, verifying(t))
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, repeat(md5(n::text), 200) as text from generate_series(1, 5000) n")
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	running := func() (op model.DatabaseOperation) {
		for _, op = range a.operations(t, db.ID) {
			if op.Type == model.OperationVerification && op.Backup == b.ID && op.Status == model.OperationRunning {
				return op
			}
		}
		return model.DatabaseOperation{}
	}
	testenv.Eventually(t, "a verification", func() bool { return running().ID != "" })
	op := running()
	free := a.fillMetadataDisk(t)
	a.Core.Cancels.Cancel(databases.VerificationClaim(db.ID), core.ErrUnwanted)
	free()
	a.awaitRecordedEnd(t, op)
	if v := a.awaitVerification(t, db.ID, b.ID); v.Status != model.VerificationVerified {
		t.Errorf("afterwards: %+v", v)
	}
}

// A start on a full disk recovers an operation, and records that once there is space.
func TestRecoveryOnAFullDisk(t *testing.T) {
	t.Parallel()
	a := openEngine(t, testConfig(t, newDataDir(t)))
	for name, generation := range map[string]int{"rolled": 0, "switched": 1} {
		op := model.DatabaseOperation{
			ID: "op_" + name, Organization: a.org, Database: "db_" + name, Type: model.OperationRestart, Status: model.OperationRunning, Generation: generation,
		}
		db := model.Database{ID: op.Database, Organization: a.org, Project: a.project, Name: name, Status: model.DatabaseRestarting, Generation: 1, Operation: op.ID}
		if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return errors.Join(tx.Databases().Insert(db), tx.Operations().Insert(op)) }); err != nil {
			t.Fatal(err)
		}
		free := a.fillMetadataDisk(t)
		err := a.Databases.RecoverOperation(t.Context(), db)
		free()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		a.awaitRecordedEnd(t, op)
		if now := a.record(t, db.ID); now.Status != model.DatabaseAvailable || now.Operation != "" {
			t.Errorf("%s: %+v", name, now)
		}
	}
}

// The end of an operation that is recorded once there is space changes nothing of what has begun on its database since.
func TestDeleteBesideLateEnd(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	op := a.beginByHand(t, a.record(t, db.ID), model.OperationRestart, model.DatabaseRestarting, 0)
	_, ended := a.Core.Cancels.Add(context.Background(), databases.VerificationClaim(db.ID)) // a deletion waits for it
	free := a.fillMetadataDisk(t)
	err := a.Databases.EndOperation(op)
	free()
	if !core.IsDiskFull(err) {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() {
		_, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID)
		deleted <- err
	}()
	testenv.Eventually(t, "the deletion", func() bool { return a.record(t, db.ID).Status == model.DatabaseDeleting })
	a.awaitRecordedEnd(t, op)
	if now := a.record(t, db.ID); now.Status != model.DatabaseDeleting || now.Operation == "" {
		t.Errorf("after the late end: status %s, operation %q", now.Status, now.Operation)
	}
	ended()
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if now := a.record(t, db.ID); now.Trash == nil || now.Operation != "" {
		t.Errorf("after the deletion: trash %v, operation %q", now.Trash, now.Operation)
	}
	for _, op := range a.operations(t, db.ID) {
		if !op.Status.Final() {
			t.Errorf("operation %s is %s", op.Type, op.Status)
		}
	}
}

// fillOnPending fills the metadata's disk as soon as a change of the database is pending; free ends that.
func (a *appliance) fillOnPending(t *testing.T, database string) (free func()) {
	t.Helper()
	filled := make(chan func(), 1)
	go func() {
		for a.record(t, database).PendingChange == nil {
			time.Sleep(100 * time.Microsecond)
		}
		filled <- a.fillMetadataDisk(t)
	}()
	return func() { (<-filled)() }
}

// A change that is in force and whose end a full disk does not let be recorded is left alone: no sweep restarts the server again,
// or ends sessions that have opened since.
func TestSweepBesideLateChange(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	for name, change := range map[string]func(id string) error{
		"settings": func(id string) error { return a.changeSettings(t, id, true, "max_prepared_transactions=5") },
		"rotation": func(id string) error {
			_, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), id, true)
			return err
		},
	} {
		view, c := a.createDatabase(t, name)
		db := view.Database
		blocking := connect(t, c) // the disk fills before the change is in force
		for _, sql := range []string{"begin", "alter role " + db.Owner + " set work_mem = '8MB'"} {
			if _, err := blocking.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}
		free := a.fillOnPending(t, db.ID)
		if err := change(db.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if a.record(t, db.ID).PendingChange == nil {
			t.Fatalf("%s: its end is recorded", name)
		}
		session := connect(t, a.connectionOf(t, db.ID))
		for range 2 {
			_ = a.sweepOnce(t.Context()) // other parts of it need the disk
		}
		if err := session.Ping(t.Context()); err != nil {
			t.Errorf("%s: a sweep has ended a session: %v", name, err)
		}
		if status, reason := a.Databases.LiveStatus(a.record(t, db.ID)); status != model.DatabaseAvailable {
			t.Errorf("%s: %s, %s", name, status, reason)
		}
		free()
		testenv.Eventually(t, "the end of the change", func() bool { return a.record(t, db.ID).PendingChange == nil })
	}
}
