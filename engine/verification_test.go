package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/backup"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

func verifying(t testing.TB) core.Config {
	cfg := testConfig(t, newDataDir(t))
	cfg.VerifyBackups = true
	return cfg
}

// awaitVerification waits for the end of a backup's verification.
func (a *appliance) awaitVerification(t testing.TB, database, id string) model.Verification {
	t.Helper()
	var v model.Verification
	testenv.Within(t, time.Minute, "the end of a verification", func() bool {
		b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), database, id)
		v = b.Verification
		return err == nil && (v.Status == model.VerificationVerified || v.Status == model.VerificationFailed)
	})
	return v
}

// checkNoVerification checks that a verification left nothing behind.
func (a *appliance) checkNoVerification(t testing.TB) {
	t.Helper()
	testenv.Within(t, time.Minute, "every trace of verifications to go", func() bool {
		left, err := os.ReadDir(filepath.Join(a.cfg.DataDir, recovery.VerificationDirectory))
		return err == nil && len(left) == 0 && a.Core.Cancels.Count() == 0
	})
	a.checkTidy(t)
}

func (a *appliance) codes(t testing.TB) map[string]model.Recommendation {
	t.Helper()
	found, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]model.Recommendation{}
	for _, r := range found {
		codes[r.Code] = r
	}
	return codes
}

// A backup is verified automatically and without the database, even if its owner has closed the database.
func TestVerification(t *testing.T) {
	t.Parallel()
	cfg := verifying(t)
	by := ahead(&cfg)
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table orders as select n, repeat(md5(n::text), 200) as text from generate_series(1, 2000) n")
	run(t, c, "create index on orders (text, n)")
	run(t, c, "create index on orders using hash (n)")
	pid := a.pid(t, db.ID)
	b := a.backUp(t, db.ID)
	v := a.awaitVerification(t, db.ID, b.ID)
	if v.Status != model.VerificationVerified || v.At == nil || !strings.Contains(v.Detail, "4 databases sound") ||
		!strings.Contains(v.Detail, "checksums of all") {
		t.Errorf("the verification: %+v", v)
	}
	if a.pid(t, db.ID) != pid {
		t.Error("the database was restarted")
	}
	a.checkNoVerification(t)
	a.awaitAudit(t, model.ActionBackupVerify, b.ID)
	by.Store(int64(48 * time.Hour))
	for code := range a.codes(t) {
		if code == "failed_verification" || code == "unverified_backup" {
			t.Errorf("recommended: %s", code)
		}
	}
	view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), db.ID)
	if err != nil || view.VerifiedBackup == nil || view.VerifiedBackup.ID != b.ID {
		t.Errorf("the newest verified backup: %+v, %v", view.VerifiedBackup, err)
	}
	status, err := a.Insight.AgentStatus(a.call(model.ActionAgentStatus))
	if err != nil || status.NewestVerified == nil || !status.NewestVerified.Equal(*v.At) {
		t.Errorf("the newest verification: %v, %v", status.NewestVerified, err)
	}
}

// One changed byte is found before anybody needs the backup.
func TestVerificationOfADamagedBackup(t *testing.T) {
	t.Parallel()
	cfg := verifying(t)
	cfg.VerifyBackups = false
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select generate_series(1, 100000) n")
	b := a.backUp(t, db.ID)
	pack := a.packOf(t, db.ID)
	flipByte(t, pack)
	a.abandon(t)
	a.cfg.VerifyBackups = true
	next := a.reopen(t)
	v := next.awaitVerification(t, db.ID, b.ID)
	if view, err := next.Databases.Get(next.call(model.ActionDatabaseGet), db.ID); err != nil || view.VerifiedBackup != nil {
		t.Errorf("a verified backup: %+v, %v", view.VerifiedBackup, err)
	}
	if v.Status != model.VerificationFailed || !strings.Contains(v.Detail, filepath.Base(pack)) || !strings.Contains(v.Detail, "damaged") {
		t.Errorf("the verification: %+v", v)
	}
	next.checkNoVerification(t)
	if r := next.codes(t)["failed_verification"]; r.Severity != model.SeverityCritical || r.Resource.ID != b.ID || !strings.Contains(r.Message, filepath.Base(pack)) {
		t.Errorf("recommended: %+v", r)
	}
	// The next backup does not build on the damaged data.
	second := next.backUp(t, db.ID)
	if v := next.awaitVerification(t, db.ID, second.ID); v.Status != model.VerificationVerified {
		t.Errorf("the verification of the next backup: %+v", v)
	}
	if err := next.Recovery.BackupDelete(next.call(model.ActionBackupDelete), db.ID, b.ID); err != nil {
		t.Fatal(err)
	}
	if _, still := next.codes(t)["failed_verification"]; still {
		t.Error("the damaged backup is gone, and the recommendation is not")
	}
}

// A verification that a crash interrupted runs again after the next start, and the remains of the first are removed.
func TestVerificationAfterACrash(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, verifying(t))
	db, _ := a.createDatabase(t, "shop")
	b := a.backUp(t, db.ID)
	a.awaitVerification(t, db.ID, b.ID)
	a.checkNoVerification(t)
	// A SIGKILL in the middle leaves this state: the record, and a running server.
	plan, err := a.Recovery.PlanEnd(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { b.Verification = model.Verification{Status: model.VerificationRunning} }); err != nil {
		t.Fatal(err)
	}
	a.startScratch(t, db.ID, plan)
	a.abandon(t)
	next := a.reopen(t)
	if v := next.awaitVerification(t, db.ID, b.ID); v.Status != model.VerificationVerified {
		t.Errorf("the verification: %+v", v)
	}
	next.checkNoVerification(t)
}

// A backup and a database can be removed during a verification.
func TestDeleteDuringVerification(t *testing.T) {
	t.Parallel()
	cfg := verifying(t)
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table t as select n, repeat(md5(n::text), 8) as text from generate_series(1, 100000) n")
	for _, remove := range []func(id string) error{
		func(id string) error {
			return a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), db.ID, id)
		},
		func(string) error {
			_, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID)
			return err
		},
	} {
		b := a.backUp(t, db.ID)
		testenv.Catch(t, time.Minute, "the start of the verification", func() bool {
			now, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, b.ID)
			if err == nil && now.Verification.Status == model.VerificationVerified {
				t.Fatal("the verification was over too soon")
			}
			return err == nil && now.Verification.Status == model.VerificationRunning
		})
		if err := remove(b.ID); err != nil {
			t.Errorf("remove during a verification: %v", err)
		}
		if left, err := os.ReadDir(filepath.Join(a.cfg.DataDir, recovery.VerificationDirectory)); err != nil || len(left) > 0 {
			t.Errorf("left of the verification: %v, %v", left, err)
		}
	}
	a.checkNoVerification(t)
}

// startScratch leaves a server running on a verification's directory.
func (a *appliance) startScratch(t testing.TB, database string, plan recovery.RestorePlan) {
	t.Helper()
	scratch := a.unpackScratch(t, database, plan, filepath.Join(a.cfg.DataDir, recovery.VerificationDirectory, plan.Backup.ID))
	if err := a.Recovery.StartRecovered(t.Context(), scratch, plan, func(int64, int64) {}); err != nil {
		t.Fatal(err)
	}
}

// unpackScratch creates a data directory for a server under the backup's id.
func (a *appliance) unpackScratch(t testing.TB, database string, plan recovery.RestorePlan, dir string) postgres.Spec {
	t.Helper()
	db, err := a.Databases.Record(database)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Recovery.Unpack(t.Context(), plan, dir, backup.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	scratch, err := a.Recovery.ScratchInstance(t.Context(), db, plan.Backup.ID, dir)
	if err != nil {
		t.Fatal(err)
	}
	return scratch
}
