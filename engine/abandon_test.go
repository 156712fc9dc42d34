package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres/postgrestest"
	"holdfast/internal/testenv"
)

// abandon stops the engine as SIGKILL does, as far as possible within one process: running operations are not
// completed, and the instances keep running.
func (a *appliance) abandon(t testing.TB) {
	t.Helper()
	a.Core.Stop()
	a.Core.Work.Wait()
	a.Databases.WarmPool.Close()
	a.Databases.Instances.Detach()
	a.Core.Audits.Close()
	if err := errors.Join(a.Databases.CloseProxies(), a.Recovery.CloseArchives(), a.Core.Blobs.Close(), a.Core.Meta.Close(), a.unlock()); err != nil {
		t.Fatalf("abandon: %v", err)
	}
}

// newDataDir creates a data directory that is removed with the test.
func newDataDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reopen starts the next engine on the data directory of an abandoned or closed one, and waits until it has examined
// every database.
func (a *appliance) reopen(t testing.TB) *appliance {
	t.Helper()
	next := startEngineOn(t, a.cfg)
	next.awaitIdle(t)
	return next
}

// awaitIdle waits until nothing is claimed: every start was tried.
func (a *appliance) awaitIdle(t testing.TB) {
	t.Helper()
	testenv.Within(t, time.Minute, "the end of every claim", func() bool { return len(a.claimed()) == 0 })
}

func (a *appliance) claimed() []string { return a.Core.Claims.UnderWay() }

// edit changes a record without going through the engine.
func (a *appliance) edit(t testing.TB, id string, change func(*model.Database)) {
	t.Helper()
	err := a.Core.Meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(id, func(d *model.Database) error {
			change(d)
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatalf("edit %s: %v", id, err)
	}
}

// beginChange records a change as Service.beginChange does, and stops there: the appliance dies before the instance
// follows.
func (a *appliance) beginChange(t testing.TB, action model.Action, id string, change func(*model.Database)) {
	t.Helper()
	call := a.call(action)
	a.edit(t, id, func(d *model.Database) {
		d.PendingChange = &model.PendingChange{Entry: *a.Core.Entry(call, nil), Idempotent: call.Idempotent, Settings: d.Settings}
		change(d)
	})
}

// sealPasswords stores passwords in a record, sealed.
func (e *Engine) sealPasswords(d *model.Database, owner, readOnly model.Secret) {
	d.OwnPassword = nil
	d.OwnerPassword = e.Core.Sealer.Seal("password "+d.ID+" "+d.Owner, owner)
	d.ReadOnlyPassword = e.Core.Sealer.Seal("password "+d.ID+" "+d.ReadOnly, readOnly)
}

// status returns the status of a database that clients see.
func (a *appliance) status(t testing.TB, id string) (model.DatabaseStatus, string) {
	t.Helper()
	view, err := a.Databases.Get(a.call(model.ActionDatabaseGet), id)
	if err != nil {
		t.Fatalf("get %s: %v", id, err)
	}
	return view.Status, view.StatusReason
}

func (a *appliance) awaitStatus(t testing.TB, id string, want model.DatabaseStatus, limit time.Duration) (reason string) {
	t.Helper()
	var now model.DatabaseStatus
	defer func() {
		if t.Failed() {
			t.Logf("%s is %s: %s", id, now, reason)
		}
	}()
	testenv.Within(t, limit, fmt.Sprintf("status %s of %s", want, id), func() bool {
		now, reason = a.status(t, id)
		return now == want
	})
	return reason
}

// pid returns the process ID of a database's postmaster.
func (a *appliance) pid(t testing.TB, id string) int {
	t.Helper()
	state, reason, pid := a.Databases.Instances.Status(id)
	if pid == 0 {
		t.Fatalf("%s has no postmaster: %s %s", id, state, reason)
	}
	return pid
}

// run runs one statement as the connection's user.
func run(t testing.TB, c databases.Connection, sql string) {
	t.Helper()
	conn := connect(t, c)
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// answer returns the single value that a query returns.
func answer[T any](t testing.TB, c databases.Connection, sql string) (value T) {
	t.Helper()
	conn := connect(t, c)
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// checkTidy checks that nothing remains of past operations: no claim or operation, no directory, process, socket or
// prepared directory without a record, and nothing in memory about removed databases.
func (a *appliance) checkTidy(t testing.TB) {
	t.Helper()
	a.awaitIdle(t)
	kept, trashed := a.databases(t)
	a.checkRecords(t, kept)
	var running, directories []string
	for _, db := range kept {
		running = append(running, a.Databases.DataDirectory(db.ID, db.Generation))
		directories = append(directories, generations(a, db)...)
	}
	for _, db := range trashed {
		directories = append(directories, generations(a, db)...)
	}
	testenv.Within(t, time.Minute, "a full warm pool", a.Databases.WarmPoolReady)
	warm := a.warmDirectories(t)
	same(t, "postmasters", a.postmasters(t), append(running, warm...))
	same(t, "data directories", below(t, filepath.Join(a.cfg.DataDir, "instances"), 2), append(directories, warm...))
	var backups []string
	for _, db := range append(kept, trashed...) {
		if _, err := os.Lstat(a.Recovery.BackupDirectory(db.ID)); err == nil {
			backups = append(backups, a.Recovery.BackupDirectory(db.ID))
		}
	}
	same(t, "backups", below(t, filepath.Join(a.cfg.DataDir, "backups"), 1), backups)
	a.checkSockets(t, kept)
	for _, path := range below(t, filepath.Join(a.cfg.DataDir, "warm"), 1) {
		if strings.HasSuffix(path, ".building") {
			t.Errorf("a incomplete prepared directory is left: %s", path)
		}
	}
	a.checkMemory(t, kept)
}

func (a *appliance) databases(t testing.TB) (kept, trashed []model.Database) {
	t.Helper()
	err := a.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			if db.Trash == nil {
				kept = append(kept, db)
			} else {
				trashed = append(trashed, db)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return kept, trashed
}

func (a *appliance) checkRecords(t testing.TB, kept []model.Database) {
	t.Helper()
	ports := map[int]string{}
	for _, db := range kept {
		if db.Operation != "" || db.Status != model.DatabaseAvailable {
			t.Errorf("%s is left %s with operation %q", db.Name, db.Status, db.Operation)
		}
		if other := ports[db.Port]; other != "" {
			t.Errorf("%s and %s have the same port %d", db.Name, other, db.Port)
		}
		ports[db.Port] = db.Name
	}
	err := a.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Operations().All(func(op model.DatabaseOperation) error {
			if op.Status == model.OperationRunning || op.Status == model.OperationPending {
				t.Errorf("operation %s (%s) is left %s", op.ID, op.Type, op.Status)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// warmDirectories returns the data directories of the warm servers.
func (a *appliance) warmDirectories(t testing.TB) (dirs []string) {
	t.Helper()
	for _, dir := range below(t, filepath.Join(a.cfg.DataDir, "instances"), 2) {
		if a.Databases.IsWarm(filepath.Base(filepath.Dir(dir))) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) != a.cfg.Warm {
		t.Errorf("there are %d warm servers instead of %d", len(dirs), a.cfg.Warm)
	}
	return dirs
}

// checkSockets checks that each database has a socket and that there are no others but those of the warm servers.
func (a *appliance) checkSockets(t testing.TB, kept []model.Database) {
	t.Helper()
	var want []string
	for _, note := range below(t, filepath.Join(a.cfg.DataDir, "warm"), 1) {
		if parts := strings.Split(filepath.Base(note), "-"); parts[0] == "server" {
			want = append(want, filepath.Join(a.Databases.SocketDir, ".s.PGSQL."+parts[3]))
		}
	}
	for _, db := range kept {
		port := fmt.Sprint(db.Port)
		if db.SleepAfter > 0 { // a proxy has its port; the server has another while it runs
			address, runs := a.Databases.Instances.ClientAddress(db.ID)
			if !runs {
				continue
			}
			_, port, _ = net.SplitHostPort(address)
		}
		want = append(want, filepath.Join(a.Databases.SocketDir, ".s.PGSQL."+port))
	}
	testenv.Within(t, time.Minute, "the end of the prepared directories' sockets", func() bool {
		for _, path := range sockets(t, a.Databases.SocketDir) {
			if !slices.Contains(want, path) {
				return false
			}
		}
		return true
	})
	same(t, "sockets", sockets(t, a.Databases.SocketDir), want)
}

func sockets(t testing.TB, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".s.PGSQL.*[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkMemory checks that the engine remembers nothing about removed databases.
func (a *appliance) checkMemory(t testing.TB, kept []model.Database) {
	t.Helper()
	known := map[string]bool{}
	for _, db := range kept {
		known[db.ID] = true
	}
	for _, id := range a.Databases.States.IDs() {
		if !known[id] && !a.Databases.IsWarm(id) {
			t.Errorf("the state of %s is remembered", id)
		}
	}
	// The appliance may just have begun a backup by itself.
	testenv.Within(t, time.Minute, "the end of every act", func() bool {
		return a.Core.Cancels.Count() == 0 && a.Databases.Progress.Count() == 0
	})
}

func generations(a *appliance, db model.Database) []string {
	dirs := []string{a.Databases.DataDirectory(db.ID, db.Generation)}
	if db.Replaced != nil {
		dirs = append(dirs, a.Databases.DataDirectory(db.ID, db.Replaced.Generation))
	}
	return dirs
}

// postmasters returns the directories below instances/ that a postmaster runs in, one entry for each postmaster.
func (a *appliance) postmasters(t testing.TB) []string {
	t.Helper()
	var dirs []string
	found := postgresProcesses(t, filepath.Join(a.cfg.DataDir, "instances"))
	for pid, dir := range found {
		title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && len(title) > 0 && !strings.HasPrefix(string(title), "postgres: ") && found[postgrestest.Parent(pid)] != dir {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// postgresProcesses returns the working directories of PostgreSQL's processes below dir, by process ID.
func postgresProcesses(t testing.TB, dir string) map[int]string {
	t.Helper()
	found := map[int]string{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		var pid int
		if _, err := fmt.Sscanf(entry.Name(), "%d", &pid); err != nil {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		cwd, _ := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd"))
		if filepath.Base(exe) == "postgres" && strings.HasPrefix(cwd, dir+"/") {
			found[pid] = cwd
		}
	}
	return found
}

// below lists the entries depth levels under dir.
func below(t testing.TB, dir string, depth int) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(dir, path)
		if err != nil || rest == "." || strings.Count(rest, "/")+1 < depth {
			return err
		}
		found = append(found, path)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n\t%s\nand not\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
