package engine

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/backup/wal"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// events collects an engine's events.
type events struct {
	mu  sync.Mutex
	all []model.Event
}

func (l *events) add(e model.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *events) of(t model.EventType) []model.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(e model.Event) bool { return e.Type != t })
}

// Failures outside of requests are reported, once each time.
func TestEvents(t *testing.T) {
	t.Parallel()
	var told events
	a := startAdvised(t, func(c *core.Config) { c.Observe = told.add })
	db := a.db.Database
	a.follow(a.one("no_backup"))
	testenv.Eventually(t, "the backup's event", func() bool { return len(told.of(model.EventBackupCompleted)) == 1 })
	if e := told.of(model.EventBackupCompleted)[0]; e.Took <= 0 || e.Organization != a.org || e.ID == "" || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
	a.breakDown(t, db)
	testenv.Eventually(t, "the failure's event", func() bool { return len(told.of(model.EventDatabaseFailed)) == 1 })
	if e := told.of(model.EventDatabaseFailed)[0]; e.Resource.ID != db.ID || !strings.Contains(e.Message, "nonsense") {
		t.Errorf("%+v", e)
	}
	repair(t, a.appliance, db)
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the recovery's event", func() bool { return len(told.of(model.EventDatabaseRecovered)) == 1 })
	if n := len(told.of(model.EventDatabaseFailed)); n != 1 {
		t.Errorf("one failure was told %d times", n)
	}
	a.breakBackups()
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the failed backup's event", func() bool { return len(told.of(model.EventBackupFailed)) == 1 })
	if e := a.awaitAudit(t, model.ActionBackupEnd, b.ID); e.Outcome != model.OutcomeError {
		t.Errorf("the end was audited as %s", e.Outcome)
	}
}

func TestGapEvent(t *testing.T) {
	t.Parallel()
	var told events
	a := startAdvised(t, func(c *core.Config) { c.Observe = told.add })
	a.Recovery.WALLost(a.db.Database, wal.Gap{At: time.Now(), Reason: "a test"})
	if gaps := told.of(model.EventRecoveryGap); len(gaps) != 1 || gaps[0].Resource.ID != a.db.ID || !gaps[0].Type.Alarming() {
		t.Errorf("%+v", gaps)
	}
}

func TestDiskEvent(t *testing.T) {
	t.Parallel()
	var told events
	cfg := testConfig(t, t.TempDir())
	cfg.Observe = told.add
	cfg.Advice.DiskFree = 1.1 // no disk has that much free space
	a := openEngine(t, cfg)
	state := false
	for range 3 {
		state = a.Insight.WatchDisk(state)
	}
	if n := len(told.of(model.EventDiskNearlyFull)); n != 1 || !state {
		t.Errorf("told %d times, %v", n, state)
	}
	a.Engine.Core.Config.Advice.DiskFree = -1 // as if space were freed
	if state = a.Insight.WatchDisk(state); state {
		t.Error("it is not over")
	}
	a.Engine.Core.Config.Advice.DiskFree = 1.1
	a.Insight.WatchDisk(state)
	if n := len(told.of(model.EventDiskNearlyFull)); n != 2 {
		t.Errorf("told %d times", n)
	}
}

// The measurements of an appliance that runs a database.
func TestMeasure(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	a.sql("create table bare (n int)")
	a.look("")
	record, err := a.Databases.Record(a.db.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.Databases.SampleOne(t.Context(), record)
	testenv.Within(t, time.Minute, "know how far the archive is behind", func() bool {
		a.Databases.SampleOne(t.Context(), record)
		stats, _ := a.Databases.Statistics.Get(a.db.ID)
		return stats.RPO != nil && *stats.RPO < time.Minute
	})
	m, err := a.Insight.Measure()
	if err != nil {
		t.Fatal(err)
	}
	if m.Databases[model.DatabaseAvailable] != 1 || len(m.Each) != 1 || m.Each[0].ID != a.db.ID || m.Each[0].Statistics == nil || m.Each[0].Statistics.SizeBytes == 0 || m.Each[0].Statistics.Connections != 1 || m.Unprotected != 1 ||
		m.Recommendations[model.SeverityWarning] == 0 || m.Organizations != 1 || m.AuditRoom == 0 {
		t.Errorf("%+v", m)
	}
	if err := a.Insight.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	session := a.receiverSession(t, a.db.ID)
	if err := syscall.Kill(session, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(session, syscall.SIGCONT) })
	a.sql("insert into bare select generate_series(1, 1000)")
	a.Databases.SampleOne(t.Context(), record)
	if m, err := a.Insight.Measure(); err != nil || m.Each[0].Statistics.WALLag == 0 {
		t.Errorf("a receiver is behind by %d bytes, %v", m.Each[0].Statistics.WALLag, err)
	}
	if err := syscall.Kill(session, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, time.Minute, "the receiver's catching up", func() bool {
		a.Databases.SampleOne(t.Context(), record)
		m, err := a.Insight.Measure()
		return err == nil && m.Each[0].Statistics.WALLag == 0
	})
	b, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), a.db.ID)
	if err != nil {
		t.Fatal(err)
	}
	a.await(b.ID)
	a.ahead.Store(int64(3 * time.Hour))
	if m, err := a.Insight.Measure(); err != nil || m.Unprotected != 0 || m.Each[0].BackupAge == nil || *m.Each[0].BackupAge < 2*time.Hour || m.BackupBytes == 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Events of a time when the clock was years behind are kept once it is right.
func TestEventsWhileClockBehind(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, t.TempDir())
	by := ahead(&cfg)
	a := openEngine(t, cfg)
	by.Store(-int64(10 * 365 * 24 * time.Hour))
	a.Core.Emit(model.Event{Type: model.EventBackupFailed, Organization: a.org, Message: "it happened"})
	by.Store(0)
	if err := a.Core.PruneEvents(); err != nil {
		t.Fatal(err)
	}
	call := a.call(model.ActionEventStream)
	if all, _, err := a.Core.Events(call, "", 100, core.EventFilter{Types: []string{"backup.failed"}}); err != nil || len(all) != 1 {
		t.Errorf("events: %+v, %v", all, err)
	}
}
