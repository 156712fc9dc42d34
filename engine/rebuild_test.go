package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/recovery"
	"holdfast/internal/durable"
)

// unfetched is a recovery from an off-site copy that leaves every database there, or cannot fetch it.
type unfetched struct {
	recovery.Offsite
	left bool
}

func (u unfetched) Recovers(string) bool              { return true }
func (u unfetched) Left(string) bool                  { return u.left }
func (u unfetched) Away(string) bool                  { return false }
func (u unfetched) Rebuilt(string, *time.Time, error) {}
func (u unfetched) Fetch(context.Context, string, func(done, total int64)) error {
	return errors.New("the copy is on fire")
}

// fetching is a recovery from an off-site copy that fetches the files of a database while somebody looks at it.
type fetching struct {
	recovery.Offsite
	fetched atomic.Bool
	during  func()

	mu       sync.Mutex
	warnings []string
}

func (f *fetching) Recovers(string) bool              { return true }
func (f *fetching) Left(string) bool                  { return false }
func (f *fetching) Away(string) bool                  { return !f.fetched.Load() }
func (f *fetching) Rebuilding(string, *time.Time)     {}
func (f *fetching) Rebuilt(string, *time.Time, error) {}
func (f *fetching) Warn(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.warnings = append(f.warnings, text)
}

func (f *fetching) Fetch(context.Context, string, func(done, total int64)) error {
	if !f.fetched.Load() {
		f.during()
		f.fetched.Store(true)
	}
	return nil
}

// loseData starts the next engine on the data directory of a, without the data of a database, which connect tells how to
// bring back.
func (a *appliance) loseData(t *testing.T, db model.Database, connect func(*Engine) recovery.Offsite) *appliance {
	t.Helper()
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(a.Databases.DatabaseDirectory(db.ID)); err != nil {
		t.Fatal(err)
	}
	records, err := meta.Open(filepath.Join(a.cfg.DataDir, core.MetadataFile))
	if err != nil {
		t.Fatal(err)
	}
	_, err = databases.MarkForRebuild(records, a.cfg.DataDir)
	if err = errors.Join(err, records.Close()); err != nil {
		t.Fatal(err)
	}
	b := startEngineOn(t, a.cfg, func(e *Engine) { e.Recovery.Connect(connect(e)) })
	b.awaitIdle(t)
	return b
}

// TestDatabaseWithoutData: nothing starts a server for a database that a recovery has not brought back. Each attempt is
// refused with the reason and the remedy, which the recommendation has too. It can be deleted, and restored from a backup.
func TestDatabaseWithoutData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		offsite unfetched
		remedy  string
	}{
		"left":   {unfetched{left: true}, "repeat `holdfast recover` with its name"},
		"failed": {unfetched{}, "restart the appliance to try again, or restore another backup: fetch the backups: the copy is on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, db, c, backup := startStepped(t)
			a = a.loseData(t, db.Database, func(*Engine) recovery.Offsite { return test.offsite })
			a.wantNoData(t, db.ID, test.remedy)
			before, err := a.Databases.Record(db.ID)
			if err != nil {
				t.Fatal(err)
			}
			for name, act := range a.actsOnData(t, db.ID) {
				err := act()
				if message := model.PublicMessage(err); model.CodeOf(err) != model.CodeConflict || !strings.Contains(message, test.remedy) ||
					strings.Contains(message, "restart it") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if now, err := a.Databases.Record(db.ID); err != nil || !reflect.DeepEqual(now, before) {
				t.Errorf("the record has changed from %+v to %+v, %v", before, now, err)
			}
			a.wantNoData(t, db.ID, test.remedy)
			a.wantRemedyRecommended(t, db.ID, test.remedy)
			if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); err != nil {
				t.Fatal(err)
			}
			a.awaitIdle(t)
			a.wantNoData(t, db.ID, test.remedy)
			a.failRestore(t, db.ID, backup)
			a.awaitStatus(t, db.ID, model.DatabaseFailed, 10*time.Second)
			a.restore(t, db.ID, backup.ID)
			a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
			if got := steps(t, c); got != "1" {
				t.Errorf("the restored database has %q", got)
			}
			if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
				t.Errorf("restart of a restored database: %v", err)
			}
		})
	}
}

// TestLookWhileFetched: while the files of a database's backups are being fetched from an off-site copy, requests that need
// them are refused, and touch none of them.
func TestLookWhileFetched(t *testing.T) {
	t.Parallel()
	a, db, c, backup := startStepped(t)
	wal := filepath.Join(a.Recovery.BackupDirectory(db.ID), recovery.WALDirectory, "1")
	arriving := filepath.Join(wal, "000000010000000000000077.zst"+durable.NewSuffix)
	a = a.loseData(t, db.Database, func(e *Engine) recovery.Offsite {
		during := func() {
			if err := os.WriteFile(arriving, []byte("the beginning of a segment"), 0o600); err != nil {
				t.Error(err)
			}
			for name, act := range (&appliance{Engine: e, cfg: a.cfg}).inDefault(t).actsOnBackups(t, db.ID, backup.ID) {
				if err := act(); model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "being fetched") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := os.Remove(arriving); err != nil {
				t.Errorf("the file that was being fetched: %v", err)
			}
		}
		return &fetching{during: during}
	})
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	if got := steps(t, c); got != "1" {
		t.Errorf("the database has %q", got)
	}
	if b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, backup.ID); err != nil || b.DeletionPending {
		t.Errorf("the backup: %+v, %v", b, err)
	}
	if err := a.actsOnBackups(t, db.ID, backup.ID)["a look"](); err != nil {
		t.Errorf("a look once the files are here: %v", err)
	}
}

// TestRebuildWithoutTheNewestManifest: where the manifest of the newest backup did not come from the copy, the database is
// rebuilt from the backup before it, to the same last commit. The backup without a manifest counts as failed, so that
// restores use the other one.
func TestRebuildWithoutTheNewestManifest(t *testing.T) {
	t.Parallel()
	a, db, c, first := startStepped(t)
	commitStep(t, c, 2)
	second := a.backUp(t, db.ID)
	moment := commitStep(t, c, 3)
	a.awaitArchived(t, db.ID, commitStep(t, c, 4))
	repository := filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository")
	copied := &fetching{during: func() {
		if err := os.Remove(filepath.Join(repository, "manifests", second.ID+".manifest")); err != nil {
			t.Error(err)
		}
	}}
	a = a.loseData(t, db.Database, func(*Engine) recovery.Offsite { return copied })
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	if got := steps(t, c); got != "1 2 3 4" {
		t.Errorf("the database has %q", got)
	}
	copied.mu.Lock()
	defer copied.mu.Unlock()
	if len(copied.warnings) != 1 || !strings.Contains(copied.warnings[0], second.ID) || !strings.Contains(copied.warnings[0], first.ID) {
		t.Errorf("warnings: %q", copied.warnings)
	}
	if b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, second.ID); err != nil || b.Verification.Status != model.VerificationFailed {
		t.Errorf("the backup without a manifest: %+v, %v", b.Verification, err)
	}
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: moment}, nil)
	if err != nil || plan.Backup.ID != first.ID {
		t.Errorf("a restore would use %s, %v", plan.Backup.ID, err)
	}
}

// TestManifestMissing: a backup whose manifest is missing at a start counts as failed. What it needs is kept, so that it is whole once
// the manifest is back.
func TestManifestMissing(t *testing.T) {
	t.Parallel()
	a, db, c, first := startStepped(t)
	second := a.backUp(t, db.ID)
	last := commitStep(t, c, 2)
	a.awaitArchived(t, db.ID, last)
	a.abandon(t)
	manifest := filepath.Join(a.Recovery.BackupDirectory(db.ID), "repository", "manifests", second.ID+".manifest")
	hidden := filepath.Join(t.TempDir(), "manifest")
	if err := os.Rename(manifest, hidden); err != nil {
		t.Fatal(err)
	}
	a = a.reopen(t)
	b, err := a.Recovery.BackupGet(a.call(model.ActionBackupGet), db.ID, second.ID)
	if err != nil || b.Verification.Status != model.VerificationFailed || !strings.Contains(b.Verification.Detail, "manifest") {
		t.Errorf("the backup: %+v, %v", b.Verification, err)
	}
	a.awaitArchived(t, db.ID, last) // by the receiver of this start
	plan, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), db.ID, recovery.RestorePoint{Time: last}, nil)
	if err != nil || plan.Backup.ID != first.ID {
		t.Errorf("a restore would use %s, %v", plan.Backup.ID, err)
	}
	a.Recovery.CollectBackups(t.Context(), db.ID)
	if err := os.Rename(hidden, manifest); err != nil {
		t.Fatal(err)
	}
	repo, err := a.Recovery.Repository(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := repo.Verify(t.Context(), nil); errors.Join(err, report.Err()) != nil || report.Backups != 2 {
		t.Errorf("%d backups are whole once the manifest is back: %v", report.Backups, errors.Join(err, report.Err()))
	}
}

// TestPurgedWhileFetched: a database in the trash that is removed for good while its files are being fetched leaves nothing.
func TestPurgedWhileFetched(t *testing.T) {
	t.Parallel()
	a, db, _, _ := startStepped(t)
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	b := openEngine(t, a.cfg)
	dir := b.Recovery.BackupDirectory(db.ID)
	fetches := 0
	for range 2 { // the second time, it is gone before
		b.Recovery.Connect(&fetching{during: func() {
			fetches++
			err := b.Databases.TrashPurge(b.call(model.ActionTrashPurge), db.ID)
			err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "arrived"), nil, 0o600))
			if err != nil {
				t.Error(err)
			}
		}})
		if err := b.Recovery.FetchBackups(t.Context(), db.ID, func(int64, int64) {}); model.CodeOf(err) != model.CodeNotFound {
			t.Errorf("fetch: %v", err)
		}
	}
	if fetches != 1 {
		t.Errorf("%d fetches", fetches)
	}
	if !core.Absent(filepath.Dir(dir), db.ID) {
		t.Error("its backups are there")
	}
}

// actsOnBackups returns what needs the files of a database's backups.
func (a *appliance) actsOnBackups(t *testing.T, database, backup string) map[string]func() error {
	return map[string]func() error{
		"a look": func() error {
			_, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), database)
			return err
		},
		"a plan": func() error {
			_, err := a.Recovery.RestorePlan(t.Context(), a.call(model.ActionRecoveryCreate), database, recovery.RestorePoint{Time: time.Now()}, nil)
			return err
		},
		"the removal of a backup": func() error { return a.Recovery.BackupDelete(a.call(model.ActionBackupDelete), database, backup) },
	}
}

// failRestore restores a backup with a setting with which the server does not start.
func (a *appliance) failRestore(t *testing.T, database string, b model.Backup) {
	t.Helper()
	set := func(settings map[string]string) {
		a.edit(t, database, func(d *model.Database) { d.Settings = settings })
	}
	set(map[string]string{"work_mem": "nonsense"})
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), database, b.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationFailed)
	set(nil)
}

// wantNoData expects that a database is failed for want of its data, and that no server is known for it.
func (a *appliance) wantNoData(t *testing.T, database, remedy string) {
	t.Helper()
	if status, reason := a.status(t, database); status != model.DatabaseFailed || !strings.Contains(reason, remedy) {
		t.Errorf("the database is %s: %s", status, reason)
	}
	if state, reason, pid := a.Databases.Instances.Status(database); state != postgres.StateStopped || pid != 0 {
		t.Errorf("its server is %s, %d: %s", state, pid, reason)
	}
	if !core.Absent(filepath.Dir(a.Databases.DatabaseDirectory(database)), database) {
		t.Error("it has a directory")
	}
}

func (a *appliance) wantRemedyRecommended(t *testing.T, database, remedy string) {
	t.Helper()
	found, err := a.Insight.Recommendations(a.call(model.ActionRecommendationList))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range found {
		if r.Code != "database_failed" {
			continue
		}
		n++
		if r.Resource.ID != database || r.Action != nil || !strings.Contains(r.Message, remedy) {
			t.Errorf("the recommendation is %+v", r)
		}
	}
	if n != 1 {
		t.Errorf("%d recommendations for a failed database", n)
	}
}

// actsOnData returns what needs the server or the data of a database.
func (a *appliance) actsOnData(t *testing.T, database string) map[string]func() error {
	ctx := t.Context()
	update := func(c databases.Change) func() error {
		return func() error {
			_, err := a.Databases.Update(ctx, a.call(model.ActionDatabaseUpdate), database, c)
			return err
		}
	}
	name, sleep, on := "renamed", time.Minute, true
	return map[string]func() error{
		"restart": func() error {
			_, err := a.Databases.Restart(ctx, a.call(model.ActionDatabaseRestart), database)
			return err
		},
		"settings": func() error {
			_, err := a.Databases.ChangeSettings(ctx, a.call(model.ActionDatabaseSettings), database, map[string]string{"work_mem": "8MB"})
			return err
		},
		"rename":      update(databases.Change{Name: &name}),
		"sleep":       update(databases.Change{SleepAfter: &sleep}),
		"replication": update(databases.Change{LogicalReplication: &on}),
		"backup": func() error {
			_, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), database)
			return err
		},
		"branch": func() error {
			_, err := a.Recovery.BranchCreate(ctx, a.call(model.ActionBranchCreate), database, recovery.NewBranch{Name: "branch"})
			return err
		},
		"password": func() error {
			_, err := a.Databases.RotatePassword(ctx, a.call(model.ActionDatabaseRotatePassword), database, false)
			return err
		},
		"certificate": func() error { _, err := a.Databases.SSLGet(a.call(model.ActionSSLGet), database); return err },
		"a late start": func() error {
			db, err := a.Databases.Record(database)
			return errors.Join(err, a.Databases.StartDatabase(ctx, db))
		},
	}
}
