package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/internal/testenv"
)

// startWarm starts an engine with that many warm servers and waits for them.
func startWarm(t *testing.T, warm int) *appliance {
	t.Helper()
	cfg := testConfig(t, newDataDir(t))
	cfg.Warm = warm
	a := startEngineOn(t, cfg)
	a.awaitWarm(t)
	return a
}

// awaitWarm waits for a full warm pool and returns the id of a warm server.
func (a *appliance) awaitWarm(t testing.TB) (id string, port int) {
	t.Helper()
	testenv.Within(t, time.Minute, "a full warm pool", a.Databases.WarmPoolReady)
	notes, err := filepath.Glob(filepath.Join(a.cfg.DataDir, "warm", "server-*"))
	if err != nil || len(notes) != a.cfg.Warm {
		t.Fatalf("notes: %q, %v", notes, err)
	}
	parts := strings.Split(filepath.Base(notes[0]), "-")
	if _, err := fmt.Sscan(parts[3], &port); err != nil {
		t.Fatal(err)
	}
	return parts[4], port
}

// A warm server admits no one before it becomes a database, and only its users after that.
func TestWarmServer(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 1)
	id, port := a.awaitWarm(t)
	for _, who := range []string{"app", "app_readonly", postgres.Superuser} {
		for _, database := range []string{"app", "postgres", "template1"} {
			url := fmt.Sprintf("postgres://%s:secret@127.0.0.1:%d/%s?sslmode=disable", who, port, database)
			if conn, err := pgx.Connect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "pg_hba.conf rejects") {
				t.Errorf("%s in %s: %v", who, database, err)
				if err == nil {
					conn.Close(t.Context())
				}
			}
		}
	}
	pid := a.pid(t, id)
	db, c := a.createDatabase(t, "shop")
	if db.ID != id || db.Port != port || a.pid(t, id) != pid {
		t.Errorf("%s on port %d was not the warm server %s on %d", db.ID, db.Port, id, port)
	}
	run(t, c, "create table t as select 1")
	url := fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable", c.User, c.Password.Reveal(), port)
	if conn, err := pgx.Connect(t.Context(), url); err == nil {
		conn.Close(t.Context())
		t.Error("the owner may connect to the database postgres")
	}
	if next, _ := a.awaitWarm(t); next == id {
		t.Errorf("%s is still a warm server", id)
	}
	a.checkTidy(t)
}

// A creation that is refused leaves the warm server as it was.
func TestWarmServerIsKept(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 1)
	a.createDatabase(t, "shop")
	id, _ := a.awaitWarm(t)
	in := databases.NewDatabase{Project: a.project, Name: "shop"}
	if _, _, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), in); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("the name was free: %v", err)
	}
	if still, _ := a.awaitWarm(t); still != id {
		t.Errorf("%s instead of %s", still, id)
	}
}

// A creation is not affected by warm servers that have died, or die as they are handed out.
func TestWarmServerDies(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 1)
	for n, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		id, _ := a.awaitWarm(t)
		pid := a.pid(t, id)
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		if signal == syscall.SIGSTOP { // it ends while the creation waits for it
			timer := time.AfterFunc(500*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			defer timer.Stop()
		}
		_, c := a.createDatabase(t, fmt.Sprintf("d%d", n))
		run(t, c, "select 1")
	}
	a.awaitWarm(t)
	a.checkTidy(t)
}

// A warm server that was restarted since it was checked is not handed out: nobody
// knows what happened to it, and it may not have read the rules of its database yet.
func TestWarmServerRestarted(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 1)
	id, _ := a.awaitWarm(t)
	if err := a.Databases.Instances.Restart(t.Context(), id, time.Minute); err != nil {
		t.Fatal(err)
	}
	pid := a.pid(t, id)
	db, c := a.createDatabase(t, "shop")
	run(t, c, "select 1")
	if now := a.pid(t, db.ID); now == pid {
		t.Error("the restarted server was handed out")
	}
	a.awaitWarm(t)
	a.checkTidy(t)
}

// The next appliance adopts what a killed one left, and what a stopped one left.
func TestWarmServersAreAdopted(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 2)
	id, _ := a.awaitWarm(t)
	pid := a.pid(t, id)
	a.abandon(t)
	b := a.reopen(t)
	if next, _ := b.awaitWarm(t); next != id || b.pid(t, id) != pid {
		t.Errorf("%s was not adopted: %s", id, next)
	}
	b.checkTidy(t)
	if err := b.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	testenv.Within(t, 10*time.Second, "the end of every process", func() bool { return len(postgresProcesses(t, a.cfg.DataDir)) == 0 })
	c := a.reopen(t)
	if next, _ := c.awaitWarm(t); next != id {
		t.Errorf("%s was not adopted after a stop: %s", id, next)
	}
	if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	a.cfg.Warm = 0
	a.reopen(t).checkTidy(t)
}

// TestWarmServersOfOtherPorts: a warm server whose port the operator no longer allows does not become a database.
func TestWarmServersOfOtherPorts(t *testing.T) {
	t.Parallel()
	a := startWarm(t, 1)
	id, port := a.awaitWarm(t)
	if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	a.cfg.FirstPort, a.cfg.LastPort = testenv.Ports(t, 20)
	b := a.reopen(t)
	if next, now := b.awaitWarm(t); next == id || now < a.cfg.FirstPort || now > a.cfg.LastPort {
		t.Errorf("%s on port %d became %s on %d, and not one from %d to %d", id, port, next, now, a.cfg.FirstPort, a.cfg.LastPort)
	}
	b.checkTidy(t)
}

// killedAt is a state in which kill -9 can leave a warm server.
type killedAt struct {
	name string
	// leave changes what an abandoned appliance left: a running warm server with its note.
	leave func(t *testing.T, a *appliance, id, dir, note string)
}

// Whatever step an appliance is killed at, the next one has nothing half made, no process and no port too many.
func TestWarmServerIsKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := []killedAt{
		{"after the note", func(t *testing.T, _ *appliance, id, dir, _ string) { stopServerAndRemove(t, dir, filepath.Dir(dir)) }},
		{"before the directory is there", func(t *testing.T, _ *appliance, id, dir, _ string) { stopServerAndRemove(t, dir, dir) }},
		{"before the certificate", func(t *testing.T, _ *appliance, _, dir, _ string) {
			stopServerAndRemove(t, dir, filepath.Join(dir, "server.crt"))
		}},
		{"before the start", func(t *testing.T, _ *appliance, _, dir, _ string) {
			stopServerAndRemove(t, dir, filepath.Join(dir, "log"))
		}},
		{"after the note is gone", func(t *testing.T, a *appliance, id, _, note string) {
			a.recordCreation(t, id)
			stopServerAndRemove(t, "", note)
		}},
		{"after the record", func(t *testing.T, a *appliance, id, _, _ string) { a.recordCreation(t, id) }},
		{"during a removal", func(t *testing.T, _ *appliance, _, dir, _ string) {
			stopServerAndRemove(t, dir, filepath.Join(dir, "base"))
			if err := os.Rename(filepath.Dir(dir), filepath.Dir(dir)+".removing"); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			a := startWarm(t, 1)
			id, _ := a.awaitWarm(t)
			dir := a.Databases.DataDirectory(id, 1)
			note, err := filepath.Glob(filepath.Join(a.cfg.DataDir, "warm", "server-*"))
			if err != nil || len(note) != 1 {
				t.Fatal(note, err)
			}
			a.abandon(t)
			step.leave(t, a, id, dir, note[0])
			b := a.reopen(t)
			b.awaitWarm(t)
			b.checkTidy(t)
			_, c := b.createDatabase(t, "shop")
			run(t, c, "create table t as select 1")
			b.awaitWarm(t)
			b.checkTidy(t)
			quarantined, _ := os.ReadDir(filepath.Join(a.cfg.DataDir, "quarantine"))
			if len(quarantined) > 0 {
				t.Errorf("in quarantine: %v", quarantined)
			}
		})
	}
}

// stopServerAndRemove stops the server of a directory, if one is named, and removes a path.
func stopServerAndRemove(t *testing.T, dir, path string) {
	t.Helper()
	if dir != "" {
		if err := postgres.StopOrphan(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// recordCreation commits the record of a creation that did not end.
func (a *appliance) recordCreation(t *testing.T, id string) {
	t.Helper()
	files := openEngine(t, a.cfg)
	defer func() {
		if err := files.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	call := files.call(model.ActionDatabaseCreate)
	db := files.Databases.NewDatabase(call, databases.NewDatabase{
		Project: files.project, Name: "half", User: "app", Password: model.NewSecret("long enough for it"),
	})
	db.ID, db.Port = id, a.cfg.LastPort
	_, release, err := files.Databases.ClaimDatabase(call, db, "the creation", files.Core.Meta.Update)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
