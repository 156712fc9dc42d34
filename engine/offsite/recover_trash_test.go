package offsite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/internal/testenv"
)

// withTrash returns a machine that ended after it had copied a database, if name is not empty, and one in the trash, and
// an empty directory in its configuration.
func withTrash(t *testing.T, name string) (m *machine, live, trashed string) {
	t.Helper()
	m = startMachine(t)
	old, _ := m.createDatabase("old")
	m.backUp(old.ID)
	if name != "" {
		db, _ := m.createDatabase(name)
		m.backUp(db.ID)
		live = db.ID
	}
	if _, err := m.Databases.Delete(t.Context(), m.call(model.ActionDatabaseDelete), old.ID); err != nil {
		t.Fatal(err)
	}
	m.awaitCopied()
	m.close(context.Background())
	m.cfg.DataDir = filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(m.cfg.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	return m, live, old.ID
}

func (m *machine) recover(only ...string) {
	m.t.Helper()
	if _, err := offsite.Recover(m.t.Context(), offsite.RecoverOptions{
		Location: m.at, DataDir: m.cfg.DataDir, Only: only, TakeOver: true, Progress: func(offsite.Progress) {},
	}); err != nil {
		m.t.Fatal(err)
	}
}

// awaitRecovered waits for the report of a recovery.
func (m *machine) awaitRecovered() offsite.RecoveryReport {
	m.t.Helper()
	testenv.Within(m.t, 2*time.Minute, "the end of the recovery", func() bool { return m.Offsite.Status().Recovery.EndedAt != nil })
	return *m.Offsite.Status().Recovery
}

// TestTrashLeftInTheCopy: a recovery with --only leaves the databases in the trash in the copy, too. One that is restored from
// the trash then comes back with a recovery that names it, also when all others are back.
func TestTrashLeftInTheCopy(t *testing.T) {
	m, shop, old := withTrash(t, "shop")
	m.recover("shop")
	m.start()
	if report := m.awaitRecovered().String(); !strings.Contains(report, "The database old stays in the copy.") {
		t.Errorf("the report: %s", report)
	}
	if db, err := m.Databases.Record(shop); err != nil || db.Rebuild {
		t.Errorf("the database that was named: %+v, %v", db, err)
	}
	if _, err := m.Databases.TrashRestore(t.Context(), m.call(model.ActionTrashRestore), old); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the remedy", func() bool {
		db, err := m.Databases.Record(old)
		status, reason := m.Databases.LiveStatus(db)
		return err == nil && status == model.DatabaseFailed && strings.Contains(reason, "repeat `holdfast recover` with its name")
	})
	m.close(context.Background())
	m.recover("shop", "old")
	m.start()
	testenv.Within(t, time.Minute, "the database from the trash", func() bool {
		db, err := m.Databases.Record(old)
		status, _ := m.Databases.LiveStatus(db)
		return err == nil && !db.Rebuild && status == model.DatabaseAvailable
	})
}
