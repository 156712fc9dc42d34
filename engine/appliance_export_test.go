package engine

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

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
