package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// startUpgradable starts an appliance with the default PostgreSQL, which must be older
// than 18, and with 16, 17 and 18.
func startUpgradable(t *testing.T, cfg core.Config) *appliance {
	t.Helper()
	own := postgrestest.Binaries(t)
	dirs := []string{own.Dir}
	for _, major := range []int{16, 17, 18} {
		if major != own.Major {
			dirs = append(dirs, postgrestest.Major(t, major).Dir)
		}
	}
	cfg.Search = binaries.Search{NoFetch: true, Installed: func() []string { return dirs }}
	return startEngineOn(t, cfg)
}

// onMajor creates a database of a major version with rows to find again.
func (a *appliance) onMajor(t *testing.T, name, major string) (databases.View, databases.Connection) {
	t.Helper()
	db, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: name, Version: major})
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"create extension hstore", "create table steps (n int primary key)", "create table parts (n int) partition by range (n)",
		"create table part partition of parts for values from (0) to (10)", "insert into parts values (1)", "select lo_from_bytea(4711, 'large')",
		"alter database " + name + " set statement_timeout = '5min'", "create unlogged table unlogged (n int primary key)", "insert into unlogged values (7)",
		"create table hidden (n int)", "revoke select on hidden from app_readonly", "create schema closed", "revoke usage on schema closed from app_readonly",
		"alter default privileges revoke select on tables from app_readonly",
	} {
		run(t, c, sql)
	}
	commitStep(t, c, 1)
	return db, c
}

// upgrade begins an upgrade.
func (a *appliance) upgrade(t testing.TB, id, version string, dryRun bool) (model.DatabaseOperation, error) {
	t.Helper()
	return a.Recovery.UpgradeDatabase(t.Context(), a.call(model.ActionDatabaseUpgrade), id, version, dryRun)
}

// upgraded upgrades a database and returns the operation that has ended.
func (a *appliance) upgraded(t testing.TB, id, version string, dryRun bool, want model.OperationStatus) model.DatabaseOperation {
	t.Helper()
	op, err := a.upgrade(t, id, version, dryRun)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, want)
	op, err = a.Databases.OperationGet(a.call(model.ActionOperationGet), op.ID)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// A database is upgraded in place, its old data comes back with an undo, and moments before and after the upgrade are
// restored with the version of their time.
func TestUpgradeInPlace(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, verifying(t))
	db, c := a.onMajor(t, "shop", "15")
	first := a.backUp(t, db.ID)
	before := commitStep(t, c, 2)

	tried := a.upgraded(t, db.ID, "18", true, model.OperationCompleted)
	if u := tried.Upgrade; u == nil || u.Down <= 0 || u.SizeBytes == 0 || !strings.HasPrefix(u.From, "15.") || !strings.HasPrefix(u.To, "18.") ||
		!slices.ContainsFunc(u.Updates, func(x model.ExtensionUpdate) bool { return x.Name == "hstore" }) && len(u.Notes) > 0 {
		t.Errorf("the dry run reports %+v", u)
	}
	if left, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, recovery.VerificationDirectory)); len(left) > 0 && !strings.HasPrefix(left[0].Name(), "bkp_") {
		t.Errorf("the dry run left %v", left)
	}
	if got := answerMajor(t, c); got != 15 {
		t.Errorf("after a dry run it runs on %d", got)
	}

	done := a.upgraded(t, db.ID, "18", false, model.OperationCompleted)
	if u := done.Upgrade; u == nil || u.Down <= 0 || u.Estimated <= 0 || u.StoppedAt == nil || done.Backup == "" {
		t.Errorf("the upgrade reports %+v, backup %q", u, done.Backup)
	}
	a.wantUpgraded(t, db.ID, c, 18, "1 2")
	if got := answer[int](t, c, "select n from unlogged"); got != 7 {
		t.Errorf("the unlogged table has %d", got)
	}
	run(t, c, "create table made ()")
	if got := answer[string](t, c, `select concat_ws(' ', has_table_privilege(r, 'steps', 'select'), has_table_privilege(r, 'hidden', 'select'),
		has_table_privilege(r, 'made', 'select'), has_schema_privilege(r, 'closed', 'usage')) from (values ('app_readonly'::name)) v (r)`); got != "t f f f" {
		t.Errorf("the read-only role may read %s, want t f f f as before", got)
	}
	commitStep(t, c, 3)
	testenv.Eventually(t, "a verified backup of the new version", func() bool {
		newest := a.backups(t, db.ID)[0]
		return newest.Verification.Status == model.VerificationVerified && strings.HasPrefix(newest.Version, "18.")
	})
	commitStep(t, c, 4)

	a.undo(t, db.ID)
	a.wantUpgraded(t, db.ID, c, 15, "1 2")
	a.undo(t, db.ID) // of the undo
	a.wantUpgraded(t, db.ID, c, 18, "1 2 3 4")

	a.goTo(t, db.ID, recovery.RestorePoint{Time: before})
	a.wantUpgraded(t, db.ID, c, 15, "1 2")
	a.undo(t, db.ID)
	name := "old"
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, first.ID, &name)
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	a.wantUpgraded(t, op.NewDatabase, a.connectionOf(t, op.NewDatabase), 15, "1")
}

// An upgrade and its dry run name the replication slots that are lost by it, and the upgrade reports their loss once.
func TestUpgradeReplicationSlots(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	var told events
	cfg := testConfig(t, newDataDir(t))
	cfg.Observe = told.add
	a := startUpgradable(t, cfg)
	db, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate),
		databases.NewDatabase{Project: a.project, Name: "shop", Version: "15", LogicalReplication: true})
	if err != nil {
		t.Fatal(err)
	}
	a.asSuperuser(t, db.ID, "select pg_create_logical_replication_slot('debezium', 'pgoutput')")
	a.backUp(t, db.ID)
	want := "the replication slot debezium is dropped: its client must copy everything again"
	for _, dryRun := range []bool{true, false} {
		if u := a.upgraded(t, db.ID, "18", dryRun, model.OperationCompleted).Upgrade; !slices.Equal(u.Notes, []string{want}) {
			t.Errorf("dry run %v: the notes are %q", dryRun, u.Notes)
		}
		if lost := told.of(model.EventReplicationSlotLost); dryRun && len(lost) > 0 {
			t.Errorf("the dry run sends %+v", lost)
		}
	}
	testenv.Eventually(t, "the slot's event", func() bool { return len(told.of(model.EventReplicationSlotLost)) > 0 })
	if lost := told.of(model.EventReplicationSlotLost); len(lost) != 1 || lost[0].Resource.ID != db.ID || !strings.Contains(lost[0].Message, "debezium") {
		t.Errorf("the upgrade sends %+v", lost)
	}
	a.awaitAudit(t, model.ActionSlotDropped, db.ID)
}

// wantUpgraded checks on which version a database runs, and what it has.
func (a *appliance) wantUpgraded(t *testing.T, id string, c databases.Connection, major int, rows string) {
	t.Helper()
	db := a.record(t, id)
	if got := answerMajor(t, c); got != major || db.Major != major || !strings.HasPrefix(db.Version, binariesOf(major)) {
		t.Errorf("it runs on %d, recorded as %s (%d); want %d", got, db.Version, db.Major, major)
	}
	if got := steps(t, c); got != rows {
		t.Errorf("it has the steps %s, want %s", got, rows)
	}
	if got := answer[string](t, c, "select convert_from(lo_get(4711), 'UTF8') || (select n from parts) || current_setting('statement_timeout')"); got != "large15min" {
		t.Errorf("it has %s", got)
	}
}

func binariesOf(major int) string { return map[int]string{15: "15.", 16: "16.", 18: "18."}[major] }

// What cannot be upgraded is refused first, and nothing changes.
func TestUpgradeRefused(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, testConfig(t, newDataDir(t)))
	db, c := a.onMajor(t, "shop", "15")
	for version, want := range map[string]model.Code{"15": model.CodeValidation, "14": model.CodeValidation, "x": model.CodeValidation, "99": model.CodeConflict} {
		if _, err := a.upgrade(t, db.ID, version, false); model.CodeOf(err) != want {
			t.Errorf("%s: %v", version, err)
		}
	}
	if len(postgrestest.Major(t, 17).MissingForUpgrade(true)) > 0 {
		if _, err := a.upgrade(t, db.ID, "17", false); model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "install the package postgresql-17") {
			t.Errorf("without pg_upgrade: %v", err)
		}
	}
	if _, err := a.upgrade(t, db.ID, "18", true); model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "make a backup first") {
		t.Errorf("a dry run without a backup: %v", err)
	}
	run(t, c, "create view old as select buffers_backend from pg_stat_bgwriter")
	a.backUp(t, db.ID)
	for _, dryRun := range []bool{true, false} {
		op := a.upgraded(t, db.ID, "18", dryRun, model.OperationFailed)
		if !strings.Contains(op.Error, "VIEW old") || !strings.Contains(op.Error, "buffers_backend") {
			t.Errorf("dry run %v: %q", dryRun, op.Error)
		}
		a.wantUpgraded(t, db.ID, c, 15, "1")
	}
	a.checkTidy(t)
}

// An appliance that dies at any step of an upgrade or of a dry run has the old data at its next start, or the new one
// after the switch, and nothing is left. TestKillDuringUpgrade of cli kills the whole process at the same steps.
func TestUpgradeInterrupted(t *testing.T) {
	testenv.All(t)
	t.Parallel()
	a := startUpgradable(t, testConfig(t, newDataDir(t)))
	db, _ := a.onMajor(t, "shop", "15")
	a.backUp(t, db.ID)
	for _, phase := range []string{"backing_up", "copying", "preparing", "upgrading", "analyzing", "recovering", model.PhaseSwitching} {
		op, err := a.upgrade(t, db.ID, "18", false)
		if err != nil {
			t.Fatal(err)
		}
		a.awaitPhase(t, op.ID, phase)
		a = a.reopenKilled(t)
		now := a.record(t, db.ID)
		c := a.connectionOf(t, db.ID)
		if now.Major == 18 && phase == model.PhaseSwitching {
			a.wantUpgraded(t, db.ID, c, 18, "1")
			a.checkTidy(t)
			return
		}
		a.wantUpgraded(t, db.ID, c, 15, "1")
		a.checkTidy(t)
	}
}

func (a *appliance) awaitPhase(t *testing.T, operation, phase string) {
	t.Helper()
	testenv.Catch(t, time.Minute, "the phase "+phase, func() bool {
		op, err := a.Databases.OperationGet(a.call(model.ActionOperationGet), operation)
		if err != nil || op.Status.Final() {
			t.Fatalf("the operation is %+v, %v", op, err)
		}
		return op.Phase == phase
	})
}

func (a *appliance) reopenKilled(t *testing.T) *appliance {
	t.Helper()
	a.abandon(t)
	return a.reopen(t)
}
