package offsite_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// A new database has a backup at once, because the copy has nothing else to rebuild it from. A backup that is requested
// in the meantime waits for it, and a request that the first one gives way to does not put it off.
func TestFirstBackupAtOnce(t *testing.T) {
	t.Parallel()
	m := startMachine(t)
	m.close(context.Background())
	m.cfg.BackupInterval = 24 * time.Hour
	m.start()

	for n := range 5 { // before the first one begins, or while it is made
		asked, _ := m.createDatabase(fmt.Sprintf("asked%d", n))
		time.Sleep(time.Duration(n*n) * 10 * time.Millisecond)
		m.backUp(asked.ID)
	}

	restarted, _ := m.createDatabase("restarted")
	testenv.Catch(t, 10*time.Second, "the first backup to begin", func() bool {
		return m.Core.Claims.Holds(databases.BackupClaim(restarted.ID), recovery.BackupClaim)
	})
	if _, err := m.Databases.Restart(t.Context(), m.call(model.ActionDatabaseRestart), restarted.ID); err != nil {
		t.Fatal(err)
	}
	m.awaitScheduled(restarted.ID)
}

// awaitScheduled waits for a completed scheduled backup, for less than the minute after which the schedule makes one.
func (m *machine) awaitScheduled(database string) {
	m.t.Helper()
	testenv.Within(m.t, 40*time.Second, "the first backup", func() bool {
		backups, err := m.Recovery.BackupList(m.call(model.ActionBackupList), database, recovery.BackupFilter{}, core.Page{})
		if err != nil {
			m.t.Fatal(err)
		}
		return slices.ContainsFunc(backups.Items, func(b model.Backup) bool {
			return b.Type == model.BackupScheduled && b.Status == model.BackupCompleted
		})
	})
}
