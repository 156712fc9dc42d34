package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/internal/testenv"
)

// callers is the number of concurrent callers.
const callers = 30

// together runs act concurrently and returns each caller's error.
func together(act func(n int) error) []error {
	errs := make([]error, callers)
	var gate, all sync.WaitGroup
	gate.Add(1)
	for n := range callers {
		all.Go(func() {
			gate.Wait()
			errs[n] = act(n)
		})
	}
	gate.Done()
	all.Wait()
	return errs
}

// checkOneWinner checks that exactly one caller succeeded and that all others got a conflict.
func checkOneWinner(t *testing.T, errs []error) {
	t.Helper()
	won := 0
	for _, err := range errs {
		switch model.CodeOf(err) {
		case "":
			won++
		case model.CodeConflict:
		default:
			t.Errorf("refused with: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d got through, not 1", won)
	}
}

func checkAllWon(t *testing.T, errs []error) {
	t.Helper()
	for n, err := range errs {
		if err != nil {
			t.Errorf("number %d: %v", n, err)
		}
	}
}

// whileFrozen runs the callers on one database whose postmaster is stopped, so that the winner cannot finish before the
// last has tried.
func (a *appliance) whileFrozen(t *testing.T, id string, act func() error) {
	t.Helper()
	pid := a.pid(t, id)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	defer thaw()
	var tried sync.WaitGroup
	tried.Add(callers - 1)
	go func() {
		tried.Wait()
		thaw()
	}()
	errs := together(func(int) error {
		err := act()
		if model.CodeOf(err) == model.CodeConflict {
			tried.Done()
		}
		return err
	})
	checkOneWinner(t, errs)
}

func TestConcurrentCallersOnOneDatabase(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	var mu sync.Mutex
	var db databases.View
	var connection databases.Connection
	errs := together(func(int) error {
		view, c, err := a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate), databases.NewDatabase{Project: a.project, Name: "shop"})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			db, connection = view, c
		}
		return err
	})
	checkOneWinner(t, errs)
	a.checkTidy(t)

	for _, act := range []struct {
		name string
		do   func(ctx context.Context) error
	}{
		{"restart", func(ctx context.Context) error {
			_, err := a.Databases.Restart(ctx, a.call(model.ActionDatabaseRestart), db.ID)
			return err
		}},
		{"rotate", func(ctx context.Context) error {
			r, err := a.Databases.RotatePassword(ctx, a.call(model.ActionDatabaseRotatePassword), db.ID, false)
			if err == nil {
				connection = r.Connection
			}
			return err
		}},
		{"allow-list", func(ctx context.Context) error {
			_, err := a.Databases.AllowlistSet(ctx, a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"})
			return err
		}},
		{"settings", func(ctx context.Context) error {
			_, err := a.Databases.ChangeSettings(ctx, a.call(model.ActionDatabaseSettings), db.ID, map[string]string{"work_mem": "5MB"})
			return err
		}},
	} {
		t.Run(act.name, func(t *testing.T) {
			a.whileFrozen(t, db.ID, func() error { return act.do(t.Context()) })
			a.checkTidy(t)
			connect(t, connection)
		})
	}
	t.Run("delete", func(t *testing.T) {
		a.whileFrozen(t, db.ID, func() error {
			_, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID)
			return err
		})
		a.checkTidy(t)
	})
}

// Different operations on one database exclude each other, too.
func TestMixedConcurrentCallersOnOneDatabase(t *testing.T) {
	t.Parallel()
	a := startEngine(t)
	db, _ := a.createDatabase(t, "shop")
	acts := []func() error{
		func() error {
			_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), db.ID)
			return err
		},
		func() error {
			_, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), db.ID, true)
			return err
		},
		func() error {
			_, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), db.ID, []string{"127.0.0.1"})
			return err
		},
		func() error {
			_, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), db.ID)
			return err
		},
	}
	var mu sync.Mutex
	next := 0
	a.whileFrozen(t, db.ID, func() error {
		mu.Lock()
		act := acts[next%len(acts)]
		next++
		mu.Unlock()
		return act()
	})
	a.checkTidy(t)
}

func TestConcurrentCallersOnDatabasesOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	cfg := testConfig(t, dir)
	cfg.FirstPort, cfg.LastPort = testenv.Ports(t, 2*callers)
	fillPool(t, cfg, callers-2) // the last two build theirs
	a := startEngineOn(t, cfg)
	dbs := make([]databases.View, callers)
	connections := make([]databases.Connection, callers)
	began := time.Now()
	checkAllWon(t, together(func(n int) (err error) {
		dbs[n], connections[n], err = a.Databases.Create(t.Context(), a.call(model.ActionDatabaseCreate),
			databases.NewDatabase{Project: a.project, Name: fmt.Sprintf("d%d", n)})
		return err
	}))
	if t.Failed() {
		return
	}
	t.Logf("%d creates at once took %s", callers, time.Since(began))
	a.checkTidy(t)
	checkAllWon(t, together(func(n int) error {
		_, err := a.Databases.Restart(t.Context(), a.call(model.ActionDatabaseRestart), dbs[n].ID)
		return err
	}))
	checkAllWon(t, together(func(n int) error {
		r, err := a.Databases.RotatePassword(t.Context(), a.call(model.ActionDatabaseRotatePassword), dbs[n].ID, true)
		connections[n] = r.Connection
		return err
	}))
	checkAllWon(t, together(func(n int) error {
		_, err := a.Databases.AllowlistSet(t.Context(), a.call(model.ActionAllowlistSet), dbs[n].ID, []string{"127.0.0.0/16"})
		return err
	}))
	a.checkTidy(t)
	for n, c := range connections { // port, password and name are unique
		if got := answer[string](t, c, "select current_database()"); got != dbs[n].Name {
			t.Errorf("the connection of %s leads to %s", dbs[n].Name, got)
		}
	}
	checkAllWon(t, together(func(n int) error {
		_, err := a.Databases.Delete(t.Context(), a.call(model.ActionDatabaseDelete), dbs[n].ID)
		return err
	}))
	a.checkTidy(t)
	if removed, err := a.TrashEmpty(a.call(model.ActionTrashEmpty)); err != nil || removed != (Emptied{Databases: callers}) {
		t.Errorf("empty trash: %d, %v", removed, err)
	}
	a.checkTidy(t)
	if left := below(t, dir+"/instances", 1); len(left) > 0 {
		t.Errorf("left of deleted databases: %v", left)
	}
	// The ports are free again: the first one is assigned next.
	db, _ := a.createDatabase(t, "again")
	if ports := portsOf(dbs); db.Port != ports[0] {
		t.Errorf("the next database got port %d, not the lowest, %d", db.Port, ports[0])
	}
}

func portsOf(dbs []databases.View) []int {
	var ports []int
	for _, db := range dbs {
		ports = append(ports, db.Port)
	}
	slices.Sort(ports)
	return ports
}
