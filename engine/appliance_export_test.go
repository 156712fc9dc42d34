package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/repository"
	"holdfast/backup/wal"
	"holdfast/backup/wal/xlog"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// An export whose client has disconnected does not wait for the backup that it started.
func TestExportEndsWithItsClient(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	pid := a.pid(t, db.ID)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- a.ApplianceExport(ctx, a.call(model.ActionApplianceExport), io.Discard) }()
	testenv.Within(t, time.Minute, "a backup", func() bool { return len(a.backups(t, db.ID)) == 1 })
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the export has not ended")
	}
}

// An export contains the WAL that the archive reports, not what its directory happens to contain while it is written
// to.
func TestExportOfWALThatIsReceived(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	start, err := xlog.ParseLSN(a.backUp(t, db.ID).StartLSN)
	if err != nil {
		t.Fatal(err)
	}
	beingWritten := filepath.Join("backups", db.ID, "wal", "1", xlog.SegmentName(1, 99, 16<<20)+".zst.new")
	writeFile(t, filepath.Join(a.cfg.DataDir, beingWritten), "half of a segment")
	status, _ := a.Recovery.WALStatus(db.ID)
	dir := filepath.Join(a.cfg.DataDir, movingDir)
	if err := a.linkToMove(dir, []model.Database{db.Database}, nil); err != nil {
		t.Fatal(err)
	}
	if !core.Absent(dir, beingWritten) {
		t.Error("what is being written was quarantined")
	}
	copied, err := wal.Open(filepath.Join(dir, "backups", db.ID, "wal"), wal.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if err := copied.Check(t.Context(), 1, 1, start, status.Durable, nil); err != nil {
		t.Errorf("the copy up to %v: %v", status.Durable, err)
	}
}

// An export has the chunks that its indexes describe, although those of a deleted backup are collected meanwhile.
func TestExportBesideCollection(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	random := "create table %s as select (select string_agg(md5(random()::text||n||g), '') from generate_series(1, 60) g) as x from generate_series(1, %d) n"
	run(t, c, fmt.Sprintf(random, "small", 1500))
	run(t, c, fmt.Sprintf(random, "big", 8000))
	deleted := a.backUp(t, db.ID)
	run(t, c, "drop table big")
	a.backUp(t, db.ID)
	_, repo, err := a.Recovery.Archives(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("backups", db.ID, "repository")
	for n := range 20000 { // linking takes a while between the indexes and the packs
		writeFile(t, filepath.Join(a.cfg.DataDir, name, "manifests", fmt.Sprintf("zz%06d.filler", n)), "")
	}
	err = errors.Join(a.Recovery.MarkForDeletion(a.call(model.ActionBackupDelete), db.ID, deleted.ID), repo.Delete(deleted.ID))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(a.cfg.DataDir, movingDir)
	ended := make(chan error, 1)
	go func() { ended <- a.linkToMove(dir, []model.Database{db.Database}, nil) }()
	testenv.Within(t, time.Minute, "the links", func() bool { return !core.Absent(dir, filepath.Join(name, "manifests")) })
	a.Recovery.CollectBackups(t.Context(), db.ID)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	copied, err := repository.OpenForReading(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if report, err := copied.Verify(t.Context(), nil); err != nil || report.Backups != 1 || report.Err() != nil {
		t.Errorf("the copy has %d good backups: %v, %v", report.Backups, report.Err(), err)
	}
}

// Databases that are created, deleted or restored from the trash while others are backed up are exported in their
// latest state, with their data.
func TestExportOfWhatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{
		"deleted with its backup":   {"gone", "shop"},
		"deleted before its backup": {"first", "shop", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exportWithChanges(t, order)
		})
	}
}

// exportWithChanges changes databases while the backup of shop waits. The databases are backed up in the given order.
func exportWithChanges(t *testing.T, order []string) {
	t.Helper()
	a := startEngine(t)
	ids := map[string]string{}
	for _, name := range append(order, "old") {
		db, c := a.createDatabase(t, name)
		run(t, c, "create table t as select 1 as n")
		ids[name] = db.ID
	}
	gone, old := ids["gone"], ids["old"]
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), old); err != nil {
		t.Fatal(err)
	}
	release, err := a.Core.Claims.Take(databases.BackupClaim(ids["shop"]), "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ended := make(chan error, 1)
	var archive bytes.Buffer
	go func() { ended <- a.ApplianceExport(t.Context(), a.call(model.ActionApplianceExport), &archive) }()
	testenv.Within(t, time.Minute, "the first backup", func() bool {
		all := a.backups(t, ids[order[0]])
		return len(all) == 1 && all[0].Status == model.BackupCompleted
	})

	fresh, inFresh := a.createDatabase(t, "fresh")
	run(t, inFresh, "create table t as select 1 as n")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), gone); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), old); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	moved := startMoved(t, &archive)
	for _, id := range []string{fresh.ID, old} {
		moved.awaitStatus(t, id, model.DatabaseAvailable, time.Minute)
		moved.wantSum(t, id, 1)
	}
	if _, err := moved.Databases.TrashRestore(t.Context(), moved.call(model.ActionTrashRestore), gone); err != nil {
		t.Fatal(err)
	}
	moved.wantSum(t, gone, 1)
}

// A database in the trash takes no space to export, and stays in the trash until the archive is written: a server
// started on its files would change them.
func TestExportHoldsTheTrash(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "old")
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- errors.Join(a.ApplianceExport(t.Context(), a.call(model.ActionApplianceExport), w), w.Close())
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.Databases.DataDirectory(db.ID, db.Generation), "PG_VERSION")
	rel, err := filepath.Rel(a.cfg.DataDir, file)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if linked, err := os.Stat(filepath.Join(a.cfg.DataDir, movingDir, rel)); err != nil || !os.SameFile(own, linked) {
		t.Errorf("it was copied: %v", err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("brought back meanwhile: %v", err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Error(err)
	}
}

// startMoved starts an engine on an exported appliance.
func startMoved(t *testing.T, archive io.Reader) *appliance {
	t.Helper()
	cfg := testConfig(t, newDataDir(t))
	if _, err := ApplianceImport(cfg.DataDir, archive); err != nil {
		t.Fatal(err)
	}
	return startEngineOn(t, cfg)
}

// wantSum checks the sum of the database's table t.
func (a *appliance) wantSum(t *testing.T, database string, want int) {
	t.Helper()
	db, err := a.Databases.Record(database)
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Databases.ConnectionOf(db, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := answer[int](t, c, "select sum(n) from t"); got != want {
		t.Errorf("%s has %d, not %d", db.Name, got, want)
	}
}
