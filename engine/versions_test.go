package engine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// Databases of every major version live beside each other: each is created, backed up, verified, exported, restored to
// a moment and imported into the default version, and keeps its version.
func TestEveryMajor(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	own := postgrestest.Binaries(t)
	dirs := []string{own.Dir}
	majors := []int{own.Major}
	for _, major := range []int{16, 17, 18} {
		if major != own.Major {
			dirs, majors = append(dirs, postgrestest.Major(t, major).Dir), append(majors, major)
		}
	}
	cfg := verifying(t)
	cfg.Exports = true
	cfg.Search = binaries.Search{NoFetch: true, Installed: func() []string { return dirs }}
	a := startEngineOn(t, cfg)
	if got := a.Binaries().Major; got != 18 {
		t.Fatalf("new databases get PostgreSQL %d", got)
	}
	for _, major := range majors {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			if major == own.Major { // which all other tests run on
				testenv.All(t)
			}
			a.liveOn(t, major)
		})
	}
}

// liveOn leads a database of a major version through its life.
func (a *appliance) liveOn(t *testing.T, major int) {
	t.Helper()
	version := strconv.Itoa(major)
	db, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{
		Project: a.project, Name: "on" + version, Version: version,
	})
	if err != nil {
		t.Fatal(err)
	}
	if db.Major != major || !strings.HasPrefix(db.Version, version+".") {
		t.Errorf("the database is recorded as %s (%d)", db.Version, db.Major)
	}
	for _, sql := range []string{
		"create extension hstore", "create table steps (n int primary key)", "create index on steps using hash (n)",
		"create table parts (n int) partition by range (n)", "create table part partition of parts for values from (0) to (10)",
		"insert into parts values (1)", "select lo_from_bytea(4711, 'large')",
	} {
		run(t, c, sql)
	}
	if got := answerMajor(t, c); got != major {
		t.Errorf("it runs on %d", got)
	}
	commitStep(t, c, 1)
	b := a.backUp(t, db.ID)
	if v := a.awaitVerification(t, db.ID, b.ID); v.Status != model.VerificationVerified || !strings.Contains(v.Detail, "amcheck found") {
		t.Errorf("verification: %+v", v)
	}
	if dump, err := a.download(t, a.awaitExport(t, db.ID, "")); err != nil || len(dump) == 0 {
		t.Errorf("export: %d bytes, %v", len(dump), err)
	}
	at := commitStep(t, c, 2)
	commitStep(t, c, 3)
	a.awaitArchived(t, db.ID, at)
	a.goTo(t, db.ID, recovery.RestorePoint{Time: at})
	if got := steps(t, c); got != "1 2" || answerMajor(t, c) != major {
		t.Errorf("after a restore to a moment: %s", got)
	}
	if got := answer[string](t, c, "select convert_from(lo_get(4711), 'UTF8') || (select n from parts)"); got != "large1" {
		t.Errorf("after a restore: %s", got)
	}
	a.undo(t, db.ID)
	if got := steps(t, c); got != "1 2 3" {
		t.Errorf("after the undo: %s", got)
	}
	_, copied := a.imported(t, imports.NewImport{Name: "from" + version, SourceURL: model.NewSecret(c.URL())})
	if got := steps(t, copied); got != "1 2 3" || answerMajor(t, copied) != a.Binaries().Major {
		t.Errorf("imported: %s", got)
	}
	if found := a.codes(t); found["extension_missing"].Code != "" {
		t.Errorf("advice: %+v", found)
	}
}

func answerMajor(t *testing.T, c databases.Connection) int {
	t.Helper()
	return answer[int](t, c, "select current_setting('server_version_num')::int / 10000")
}

// A version that cannot be had is refused, and nothing is made.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	for version, want := range map[string]string{
		"14": "the oldest", "99": "postgresql-99", "x": "not a major version", "15.3": "not a major version", "015": "not a major version", "-1": "too old",
	} {
		_, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop", Version: version})
		if model.CodeOf(err) != model.CodeValidation || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", version, err)
		}
	}
	all, err := a.Databases.Versions(t.Context(), a.call(model.ActionDatabaseVersionList))
	if err != nil || len(all) == 0 {
		t.Fatalf("versions: %+v, %v", all, err)
	}
	a.createDatabase(t, "shop")
	a.checkTidy(t)
}
