package engine

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// A killed postmaster is restarted, and until then the database is unavailable and says why. The test logs how long
// that takes.
func TestKilledPostmasterIsBack(t *testing.T) {
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	for n := range 3 {
		pid := a.pid(t, db.ID)
		var reason string
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		testenv.Catch(t, time.Minute, "the database's return", func() bool {
			status, why := a.status(t, db.ID)
			switch status {
			case model.DatabaseUnavailable:
				reason = why
			case model.DatabaseAvailable:
			default:
				t.Errorf("the database is %s meanwhile: %s", status, why)
			}
			_, _, now := a.Databases.Instances.Status(db.ID)
			return status == model.DatabaseAvailable && now != pid && now != 0
		})
		t.Logf("back after %s", time.Since(began))
		// The first restart is immediate, and may be too fast to observe.
		if (n > 0 || reason != "") && !strings.Contains(reason, "killed by signal 9") {
			t.Errorf("the reason given meanwhile: %q", reason)
		}
		if n := answer[int](t, c, "select n from kept"); n != 1 {
			t.Errorf("read %d", n)
		}
	}
}

// Operations that need a running instance are refused with a clear message while there is none.
func TestActsOnADeadDatabase(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	a.breakDown(t, db.Database)
	for name, act := range map[string]func() error{
		"backup": func() error {
			_, err := a.Recovery.BackupCreate(a.call(model.ActionBackupCreate), db.ID)
			return err
		},
		"rotate": func() error {
			_, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, false)
			return err
		},
		"allow-list": func() error {
			_, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, nil)
			return err
		},
		"row-level security": func() error {
			_, err := a.Databases.RLSGet(t.Context(), a.call(model.ActionRLSGet), db.ID, "")
			return err
		},
		"restart": func() error {
			_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
			return err
		},
	} {
		if err := act(); model.CodeOf(err) != model.CodeConflict || !strings.Contains(model.PublicMessage(err), "nonsense") {
			t.Errorf("%s: %s %s (%v)", name, model.CodeOf(err), model.PublicMessage(err), err)
		}
	}
	a.awaitIdle(t)
	// Operations that need no instance: delete, and restore from the trash.
	if _, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
	repair(t, a, db.Database)
	if _, err := a.Databases.TrashRestore(t.Context(), a.call(model.ActionTrashRestore), db.ID); err != nil {
		t.Fatalf("restore from trash: %v", err)
	}
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, 10*time.Second)
	if n := answer[int](t, c, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
}

// breakDown makes a database unable to start, and waits until it has failed permanently.
func (a *appliance) breakDown(t *testing.T, db model.Database) (reason string) {
	t.Helper()
	writeFile(t, autoConf(a, db), "nonsense_of_a_setting = 'x'\n")
	if err := syscall.Kill(a.pid(t, db.ID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return a.awaitStatus(t, db.ID, model.DatabaseFailed, time.Minute)
}

func repair(t *testing.T, a *appliance, db model.Database) {
	t.Helper()
	if err := os.WriteFile(autoConf(a, db), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func autoConf(a *appliance, db model.Database) string {
	return filepath.Join(a.Databases.DataDirectory(db.ID, db.Generation), "postgresql.auto.conf")
}

// A database that cannot start is failed, with PostgreSQL's last message as the reason, and the others keep running. It
// comes back once it is repaired, by itself or at once by a restart.
func TestDatabaseThatCannotStart(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(*testing.T, *appliance, model.Database){
		"by itself": func(*testing.T, *appliance, model.Database) {},
		"by a restart": func(t *testing.T, a *appliance, db model.Database) {
			if _, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID); err != nil {
				t.Error(err)
			}
		},
		"by the next start": func(t *testing.T, a *appliance, _ model.Database) {
			if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
			*a = *a.reopen(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startEngine(t)
			db, c := a.createDatabase(t, "shop")
			_, other := a.createDatabase(t, "other")
			session := connect(t, other)
			run(t, c, "create table kept as select 1 as n")
			if reason := a.breakDown(t, db.Database); !strings.Contains(reason, "unrecognized configuration parameter") ||
				!strings.Contains(reason, "nonsense_of_a_setting") {
				t.Errorf("the reason does not hold PostgreSQL's last words: %s", reason)
			}
			if err := session.Ping(t.Context()); err != nil {
				t.Errorf("the other database: %v", err)
			}
			repair(t, a, db.Database)
			back(t, a, db.Database)
			a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
			if n := answer[int](t, c, "select n from kept"); n != 1 {
				t.Errorf("read %d", n)
			}
			a.awaitAudit(t, model.ActionInstanceDown, db.ID)
		})
	}
}

// A database that did not start with the appliance gets the recorded roles when it starts: its passwords may have been
// changed before.
func TestRolesAfterALateStart(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	a.edit(t, db.ID, func(d *model.Database) {
		a.sealPasswords(d, model.NewSecret("the owner's new one"), model.NewSecret("the reader's new one"))
	})
	a.breakDown(t, db.Database)
	a.abandon(t)
	b := a.reopen(t)
	b.awaitStatus(t, db.ID, model.DatabaseFailed, time.Minute)
	repair(t, b, db.Database)
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	record, err := b.Databases.Record(db.ID)
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Databases.ConnectionOf(record, true)
	if err != nil {
		t.Fatal(err)
	}
	connect(t, c)
}

// awaitAudit waits for an audit entry of the appliance itself about a database.
func (a *appliance) awaitAudit(t testing.TB, action model.Action, id string) (found model.AuditEntry) {
	t.Helper()
	testenv.Within(t, time.Minute, "the audit entry "+string(action), func() bool {
		entries, _, err := a.Core.AuditList(a.call(model.ActionAuditList), core.AuditFilter{}, 1, core.MaxLimit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Action == action && e.Resource.ID == id && e.Actor.Type == model.ActorSystem {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// If a foreign process has the database's port, the database moves to another port and says so.
func TestForeignProcessOnThePort(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	_, other := a.createDatabase(t, "other")
	run(t, c, "create table kept as select 1 as n")
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	foreign, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", db.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	b := a.reopen(t)
	b.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	moved, err := b.Databases.Record(db.ID)
	if err != nil || moved.Port == db.Port || moved.Port == other.Port {
		t.Fatalf("the record: port %d, was %d, %v", moved.Port, db.Port, err)
	}
	entry := b.awaitAudit(t, model.ActionInstanceMoved, db.ID)
	if entry.Details["from"] != fmt.Sprint(db.Port) || entry.Details["to"] != fmt.Sprint(moved.Port) {
		t.Errorf("the audit entry: %v", entry.Details)
	}
	now, err := b.Databases.ConnectionOf(moved, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := answer[int](t, now, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
	connect(t, other) // it kept its port
	b.checkTidy(t)
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// It keeps its new port.
	third := b.reopen(t)
	third.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
	connect(t, now)
}

// The same while the instance is being restarted.
func TestForeignProcessOnThePortOfADeadInstance(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "create table kept as select 1 as n")
	a.breakDown(t, db.Database)
	foreign, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", db.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	repair(t, a, db.Database)
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	moved, err := a.Databases.Record(db.ID)
	if err != nil || moved.Port == db.Port {
		t.Fatalf("the record: port %d, was %d, %v", moved.Port, db.Port, err)
	}
	now, err := a.Databases.ConnectionOf(moved, true)
	if err != nil {
		t.Fatal(err)
	}
	if n := answer[int](t, now, "select n from kept"); n != 1 {
		t.Errorf("read %d", n)
	}
	a.awaitAudit(t, model.ActionInstanceMoved, db.ID)
	a.checkTidy(t)
}

// An appliance that was killed adopts its instances, which never noticed.
func TestAdoption(t *testing.T) {
	t.Parallel()
	// More than eight, the least number that memory is divided by: the automatic settings are lower for the last one
	// than for the first, and that alone causes no restart.
	const count = 10
	cfg := testConfig(t, newDataDir(t))
	fillPool(t, cfg, count)
	a := startEngineOn(t, cfg)
	var dbs []databases.View
	pids := map[string]int{}
	for n := range count {
		db, c := a.createDatabase(t, fmt.Sprintf("d%d", n))
		dbs, pids[db.ID] = append(dbs, db), a.pid(t, db.ID)
		session := connect(t, c)
		t.Cleanup(func() {
			if t.Failed() {
				return
			}
			if err := session.Ping(context.Background()); err == nil {
				t.Error("the session outlived the last engine's Close")
			}
		})
		defer func() {
			if err := session.Ping(t.Context()); err != nil {
				t.Errorf("the session did not outlive the appliance: %v", err)
			}
		}()
	}
	for range 2 {
		a.abandon(t)
		a = a.reopen(t)
		for _, db := range dbs {
			a.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
			if now := a.pid(t, db.ID); now != pids[db.ID] {
				t.Errorf("%s has the postmaster %d, not the adopted %d", db.Name, now, pids[db.ID])
			}
		}
		a.checkTidy(t)
	}
}

// After a power failure all processes are dead, the pid files still exist, and their process IDs may belong to any
// process.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	const count = 8
	cfg := testConfig(t, newDataDir(t))
	fillPool(t, cfg, count)
	a := startEngineOn(t, cfg)
	var connections []databases.Connection
	var dbs []databases.View
	for n := range count {
		db, c := a.createDatabase(t, fmt.Sprintf("d%d", n))
		run(t, c, fmt.Sprintf("create table kept as select %d as n", n))
		dbs, connections = append(dbs, db), append(connections, c)
	}
	// Without their supervisor nothing restarts the instances that die now.
	a.abandon(t)
	var all sync.WaitGroup
	for pid := range postgresProcesses(t, filepath.Join(a.cfg.DataDir, "instances")) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatal(err)
		}
		all.Go(func() { // the children of this process
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(pid, &status, 0, nil)
		})
	}
	all.Wait()
	testenv.Within(t, time.Minute, "the death of all", func() bool {
		return len(postgresProcesses(t, filepath.Join(a.cfg.DataDir, "instances"))) == 0
	})
	foreign := stranger(t)
	for n, number := range []int{foreign, os.Getpid()} {
		file := filepath.Join(a.Databases.DataDirectory(dbs[n].ID, 1), "postmaster.pid")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("the pid file is not stale: %v", err)
		}
		_, rest, _ := strings.Cut(string(text), "\n")
		writeFile(t, file, fmt.Sprintf("%d\n%s", number, rest))
	}
	writeFile(t, filepath.Join(a.Databases.DataDirectory(dbs[2].ID, 1), "postmaster.pid"), "") // truncated

	began := time.Now()
	b := a.reopen(t)
	for n, db := range dbs {
		b.awaitStatus(t, db.ID, model.DatabaseAvailable, 30*time.Second)
		if got := answer[int](t, connections[n], "select n from kept"); got != n {
			t.Errorf("%s holds %d", db.Name, got)
		}
	}
	t.Logf("%d databases back after %s", count, time.Since(began))
	if err := syscall.Kill(foreign, 0); err != nil {
		t.Errorf("the stranger was ended: %v", err)
	}
	b.checkTidy(t)
}

// stranger starts a process unrelated to PostgreSQL and returns its process ID.
func stranger(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}
