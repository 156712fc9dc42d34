package engine

import (
	"context"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// The first backup of a database that nobody has written to is made, but neither verified nor exported until somebody has,
// unless it is asked for.
func TestUnusedDatabase(t *testing.T) {
	t.Parallel()
	cfg := exporting(t)
	by := ahead(&cfg)
	cfg.BackupInterval, cfg.VerifyBackups = 24*time.Hour, true
	a := startEngineOn(t, cfg)
	idle, _ := a.createDatabase(t, "idle") // of a warm server, if there is one
	used, c := a.createDatabase(t, "used")
	by.Store(int64(2 * time.Minute))
	a.Recovery.BackUpDue(t.Context())
	a.awaitIdle(t)
	owner := connect(t, c)
	defer owner.Close(context.WithoutCancel(t.Context()))
	if _, err := owner.Exec(t.Context(), "select 1; begin; create table t (n int); rollback"); err != nil {
		t.Fatal(err)
	}
	a.work(t)
	for _, id := range []string{idle.ID, used.ID} {
		all := a.backups(t, id)
		if len(all) != 1 || all[0].Status != model.BackupCompleted || all[0].Verification.Status != model.VerificationUnverified || all[0].Verification.Detail == "" {
			t.Errorf("%+v, want a backup that nobody has verified, and why", all)
		}
		if view, err := a.Recovery.ExportGet(a.call(model.ActionExportGet), id, ""); err != nil || view.Status != model.ExportPending {
			t.Errorf("export %s, %v, want a pending one", view.Status, err)
		}
	}
	if _, err := owner.Exec(t.Context(), "create table t (n int)"); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the verification of a database with data", func() bool {
		a.Recovery.Verifications.Wake() // instead of waiting for the interval
		return a.backups(t, used.ID)[0].Verification.Status == model.VerificationVerified
	})
	a.awaitExport(t, used.ID, "")
	if v := a.backups(t, idle.ID)[0].Verification; v.Status != model.VerificationUnverified {
		t.Errorf("the backup of an empty database is %s", v.Status)
	}
	if _, err := a.Recovery.ExportCreate(t.Context(), a.call(model.ActionExportCreate), idle.ID, ""); err != nil {
		t.Fatal(err)
	}
	a.awaitExport(t, idle.ID, "")
	by.Store(int64(25 * time.Hour))
	testenv.Within(t, time.Minute, "the verification after a day", func() bool {
		a.Recovery.Verifications.Wake()
		return a.backups(t, idle.ID)[0].Verification.Status == model.VerificationVerified
	})
}

// work lets the workers look for verifications and exports, and waits for what they begin.
func (a *appliance) work(t *testing.T) {
	t.Helper()
	if a.Recovery.VerifyNext(t.Context()) {
		t.Error("a backup of an unused database was verified")
	}
	if a.Recovery.MakeNextExport(t.Context()) {
		t.Error("an unused database was exported")
	}
	a.awaitIdle(t)
}
