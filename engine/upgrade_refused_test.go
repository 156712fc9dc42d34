package engine

import (
	"strings"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres/extensions"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// An upgrade is told as events, one at its beginning and one at its end, and other operations are refused with its name. A
// dry run is no event.
func TestUpgradeEvents(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	var told events
	cfg.Observe = told.add
	a := startUpgradable(t, cfg)
	db, c := a.onMajor(t, "shop", "15")
	run(t, c, "create view old as select buffers_backend from pg_stat_bgwriter")
	a.backUp(t, db.ID)
	counts := func(started, failed, completed int) {
		t.Helper()
		testenv.Eventually(t, "the events", func() bool {
			return len(told.of(model.EventUpgradeStarted)) == started && len(told.of(model.EventUpgradeFailed)) == failed && len(told.of(model.EventUpgradeCompleted)) == completed
		})
	}
	a.upgraded(t, db.ID, "18", true, model.OperationFailed)
	counts(0, 0, 0)
	a.upgraded(t, db.ID, "18", false, model.OperationFailed)
	counts(1, 1, 0)
	if e := told.of(model.EventUpgradeFailed)[0]; e.Resource.ID != db.ID || !strings.Contains(e.Message, "VIEW old") {
		t.Errorf("told of the failure: %+v", e)
	}
	run(t, c, "drop view old")
	op, err := a.upgrade(t, db.ID, "18", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "an upgrade") {
		t.Errorf("a deletion during the upgrade: %v", err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	counts(2, 1, 1)
	if e := told.of(model.EventUpgradeCompleted)[0]; e.Resource.ID != db.ID || e.Message != "The upgrade of shop is complete." {
		t.Errorf("told of the end: %+v", e)
	}
	a.wantUpgraded(t, db.ID, c, 18, "1")
}

// Prepared transactions are refused, which no upgrade keeps, and named; nothing changes.
func TestUpgradeRefusesPreparedTransactions(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, testConfig(t, newDataDir(t)))
	db, c := a.onMajor(t, "shop", "15")
	if _, err := a.Databases.ChangeSettings(t.Context(), a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"max_prepared_transactions": "5"}); err != nil {
		t.Fatal(err)
	}
	a.backUp(t, db.ID)
	conn := connect(t, c)
	for _, sql := range []string{"begin", "insert into steps values (2)", "prepare transaction 'left open'"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if _, err := a.upgrade(t, db.ID, "18", dryRun); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "'left open' in the database shop") {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
	a.wantUpgraded(t, db.ID, c, 15, "1")
	run(t, c, "commit prepared 'left open'")
	a.upgraded(t, db.ID, "18", false, model.OperationCompleted)
	a.wantUpgraded(t, db.ID, c, 18, "1 2")
}

// A database made by a restore has the settings of its source, for the server and for its care, without its replication.
func TestRestoreIntoNewKeepsSettings(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, newDataDir(t))
	cfg.BackupInterval = 24 * time.Hour
	a := startEngineOn(t, cfg)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 7 as n")
	if err := a.changeSettings(t, db.ID, false, "statement_timeout=90000", "timezone=Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	window, err := model.NewMaintenanceWindow("maintenance_window", "sunday", "03:00", 60)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.update(t, db.ID, databases.Change{BackupRetention: new(48 * time.Hour), BackupEvery: new(12 * time.Hour), MaintenanceWindow: &window}); err != nil {
		t.Fatal(err)
	}
	b := a.backUp(t, db.ID)
	op, err := a.Recovery.BackupRestore(a.call(model.ActionBackupRestore), db.ID, b.ID, new("copy"))
	if err != nil {
		t.Fatal(err)
	}
	a.awaitOperation(t, op, model.OperationCompleted)
	source, made := a.record(t, db.ID), a.record(t, op.NewDatabase)
	if made.BackupEvery != source.BackupEvery || made.BackupRetention != source.BackupRetention || made.MaintenanceWindow != source.MaintenanceWindow ||
		made.ConnectionLimit != source.ConnectionLimit || source.BackupRetention == 0 || made.LogicalReplication {
		t.Errorf("made %+v of %+v", made, source)
	}
	if got := answer[string](t, a.connectionOf(t, made.ID), "select current_setting('statement_timeout') || ' ' || current_setting('timezone') || ' ' || (select n from kept)"); got != "90s Europe/Berlin 7" {
		t.Errorf("it has the settings %s", got)
	}
}

// A database with extensions that are not in every PostgreSQL is upgraded to a version that has their files, and is refused
// by one that has not, with what to install.
func TestUpgradeWithPackagedExtensions(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	a := startUpgradable(t, testConfig(t, newDataDir(t)))
	own, next := postgrestest.Binaries(t), postgrestest.Major(t, 18)
	for name, query := range map[string]string{
		"hypopg":     "select count(*)::text from hypopg_list_indexes",
		"postgis":    "select st_astext(st_point(1, 2))",
		"pg_partman": "select count(*)::text from partman.part_config",
		"pg_cron":    "select count(*)::text from cron.job",
	} {
		has, _ := own.HasExtension(name)
		if !testenv.Extension(t, name, has) {
			continue
		}
		db, c := a.onMajor(t, name, "15")
		if _, err := a.Databases.ExtensionSet(t.Context(), a.call(model.ActionExtensionSet), db.ID, databases.ExtensionChange{Name: name, Restart: true}); err != nil {
			t.Fatal(err)
		}
		before := answer[string](t, c, query)
		if has, _ := next.HasExtension(name); has {
			a.upgraded(t, db.ID, "18", false, model.OperationCompleted)
			a.wantUpgraded(t, db.ID, c, 18, "1")
		} else {
			_, err := a.upgrade(t, db.ID, "18", false)
			if says := name + " (the operator can " + extensions.Find(name).Install(18) + ")"; model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %s", name, err, says)
			}
			a.wantUpgraded(t, db.ID, c, 15, "1")
		}
		if got := answer[string](t, c, query); got != before {
			t.Errorf("%s answers %s, and before %s", name, got, before)
		}
	}
}
