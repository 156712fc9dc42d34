package engine

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// An export whose client has gone does not wait for the backup it has begun.
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
	within(t, time.Minute, "a backup", func() bool { return len(a.backups(t, db.ID)) == 1 })
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

// The WAL that is put aside is what the archive says that it has, not what its
// directory happens to hold while it is written to.
func TestExportOfWALThatIsReceived(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	start, err := wal.ParseLSN(a.backUp(t, db.ID).StartLSN)
	if err != nil {
		t.Fatal(err)
	}
	beingWritten := filepath.Join("backups", db.ID, "wal", "1", wal.SegmentName(1, 99, 16<<20)+".zst.new")
	writeFile(t, filepath.Join(a.cfg.DataDir, beingWritten), "half of a segment")
	status, _ := a.walStatus(db.ID)
	dir := filepath.Join(a.cfg.DataDir, movingDir)
	if err := a.putAsideToMove(dir, []model.Database{db.Database}, nil); err != nil {
		t.Fatal(err)
	}
	if !absent(dir, beingWritten) {
		t.Error("what is being written was put aside")
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
