package engine

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/engine/postgres/postgrestest"
)

// anotherMajor returns the tests' own PostgreSQL and another major version, the older one first.
func anotherMajor(t *testing.T) (older, newer binaries.Set) {
	t.Helper()
	own := postgrestest.Binaries(t)
	major := binaries.NewestRelease
	if own.Major == major {
		major = 17
	}
	other := postgrestest.Major(t, major)
	if own.Major < other.Major {
		return own, other
	}
	return other, own
}

// shelf is the directory list that the search currently finds as "installed".
type shelf struct{ dirs atomic.Value }

func (s *shelf) put(bins ...binaries.Set) {
	var dirs []string
	for _, bin := range bins {
		dirs = append(dirs, bin.Dir)
	}
	s.dirs.Store(dirs)
}

func (s *shelf) search() binaries.Search {
	return binaries.Search{NoFetch: true, Installed: func() []string { return s.dirs.Load().([]string) }}
}

// major returns the major version of the server.
func major(t *testing.T, c databases.Connection) int {
	t.Helper()
	text := answer[string](t, c, "show server_version_num")
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return number / 10_000
}

func TestMajors(t *testing.T) {
	t.Parallel()
	older, newer := anotherMajor(t)
	var on shelf
	on.put(older)
	cfg := testConfig(t, newDataDir(t))
	cfg.Search = on.search()
	a := startEngineOn(t, cfg)
	old, oldConnection := a.createDatabase(t, "old")
	run(t, oldConnection, "create table kept as select 1 as n")
	b := a.backUp(t, old.ID)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// New databases use the newer version, and the others do not change.
	on.put(older, newer)
	a = a.reopen(t)
	if got := a.Binaries().Major; got != newer.Major {
		t.Fatalf("new databases get PostgreSQL %d, not %d", got, newer.Major)
	}
	a.awaitStatus(t, old.ID, model.DatabaseAvailable, 30*time.Second)
	recent, recentConnection := a.createDatabase(t, "recent")
	if recent.Major != newer.Major || recent.Version != newer.Version {
		t.Errorf("the new database is recorded as %s (%d)", recent.Version, recent.Major)
	}
	if o, n := major(t, oldConnection), major(t, recentConnection); o != older.Major || n != newer.Major {
		t.Errorf("the old database runs on %d, the new one on %d", o, n)
	}
	// A restore of the old database also uses its own major version.
	a.restore(t, old.ID, b.ID)
	a.undo(t, old.ID)
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), old.ID); err != nil {
		t.Fatal(err)
	}
	if got := major(t, oldConnection); got != older.Major {
		t.Errorf("after a restore and a restart the old database runs on %d", got)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Without its binaries a database fails with a remedy; the others run.
	on.put(newer)
	a = a.reopen(t)
	reason := a.awaitStatus(t, old.ID, model.DatabaseFailed, 30*time.Second)
	if want := "postgresql-" + strconv.Itoa(older.Major); !strings.Contains(reason, want) {
		t.Errorf("the reason does not name the package %s: %s", want, reason)
	}
	a.awaitStatus(t, recent.ID, model.DatabaseAvailable, 30*time.Second)
	connect(t, recentConnection)
	_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), old.ID)
	if model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "install") {
		t.Errorf("restart without binaries: %v", err)
	}
	a.awaitStatus(t, old.ID, model.DatabaseFailed, 0)

	// After they are installed a restart brings the database back.
	on.put(older, newer)
	if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), old.ID); err != nil {
		t.Fatalf("restart once they are installed: %v", err)
	}
	if n := answer[int](t, oldConnection, "select n from kept"); n != 1 || major(t, oldConnection) != older.Major {
		t.Errorf("read %d", n)
	}
	a.checkTidy(t)
}
