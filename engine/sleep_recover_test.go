package engine

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/internal/testenv"
)

// Clients that connect while a database falls asleep wake it, and all that they write is
// archived.
func TestSleepIsInterrupted(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	a.letSleep(t, db.ID, time.Hour)
	a.edit(t, db.ID, func(d *model.Database) { d.SleepAfter = time.Millisecond })
	for n := range 6 {
		a.awaitSleep(t, db.ID) // the server is being stopped
		conn := connect(t, c)
		var at time.Time
		if err := conn.QueryRow(t.Context(), "insert into steps values ($1) returning clock_timestamp()", 2+n).Scan(&at); err != nil {
			t.Fatal(err)
		}
		a.awaitArchived(t, db.ID, at)
		_ = conn.Close(t.Context())
	}
	if got := steps(t, c); got != "1 2 3 4 5 6 7" {
		t.Errorf("steps %s", got)
	}
	a.mustHaveNoGap(t, db.ID)
}

// An appliance that dies while a database falls asleep or wakes loses nothing: the next
// one has its data and all of its WAL.
func TestSleepKilled(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	a.letSleep(t, db.ID, time.Hour)
	die := func(n int) {
		t.Helper()
		a.abandon(t)
		a = a.reopen(t)
		a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
		a.awaitArchived(t, db.ID, commitStep(t, c, n))
		a.mustHaveNoGap(t, db.ID)
	}
	commitStep(t, c, 2)
	asleep, err := a.Databases.Instances.Sleep(t.Context(), db.ID, func() bool { return true }, func() error { return nil })
	if err != nil || !asleep {
		t.Fatalf("it sleeps: %v, %v", asleep, err)
	}
	die(3) // stopped, and neither archived nor recorded

	a.sleepOnce(t, db.ID)
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		if conn, err := pgx.Connect(context.Background(), c.URL()); err == nil {
			_ = conn.Close(context.Background())
		}
	}()
	pid := filepath.Join(a.Databases.DataDirectory(db.ID, 1), "postmaster.pid")
	testenv.Catch(t, time.Minute, "the server's start", func() bool {
		_, err := os.Stat(pid)
		return err == nil
	})
	die(4) // being started
	<-woken

	a.sleepOnce(t, db.ID)
	conn := connect(t, c)
	if err := a.Recovery.StopReceiving(db.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "insert into steps values (5)"); err != nil {
		t.Fatal(err)
	}
	die(6) // awake, and nothing of that received

	a.sleepOnce(t, db.ID)
	if a.goTo(t, db.ID, recovery.RestorePoint{Time: a.Core.Clock()}); steps(t, c) != "1 2 3 4 5 6" {
		t.Errorf("steps %s", steps(t, c))
	}
}

// When the server of a sleeping database fails to start on a connection, its WAL is archived again once it has started.
func TestSleepWakeFails(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	a.letSleep(t, db.ID, time.Hour)
	commitStep(t, c, 2)
	a.sleepOnce(t, db.ID)
	version := filepath.Join(a.Databases.DataDirectory(db.ID, 1), "PG_VERSION")
	if err := os.Rename(version, version+".away"); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(t.Context(), c.URL()); err == nil {
		conn.Close(t.Context())
		t.Fatal("it woke without its version")
	}
	if err := os.Rename(version+".away", version); err != nil {
		t.Fatal(err)
	}
	a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
	a.awaitArchived(t, db.ID, commitStep(t, c, 3))
	a.mustHaveNoGap(t, db.ID)
}

// A database that may sleep, and whose port another program has when the appliance starts, is not served without its proxy,
// which would refuse its clients. The sweep starts it, or lets it sleep on, once the port is free.
func TestSleepPortTaken(t *testing.T) {
	t.Parallel()
	for name, asleep := range map[string]bool{"awake": false, "asleep": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, newDataDir(t))
			cfg.LastPort = cfg.FirstPort
			a := startEngineOn(t, cfg)
			db, c := a.createDatabase(t, "shop")
			a.letSleep(t, db.ID, time.Hour)
			if asleep {
				a.sleepOnce(t, db.ID)
			}
			if err := a.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(cfg.FirstPort)))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			a = a.reopen(t)
			if reason := a.awaitStatus(t, db.ID, model.DatabaseFailed, time.Minute); !strings.Contains(reason, "no port") {
				t.Errorf("the reason is %q", reason)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := a.sweepOnce(t.Context()); err != nil {
				t.Error(err)
			}
			a.awaitStatus(t, db.ID, model.DatabaseAvailable, time.Minute)
			if a.Databases.IsAsleep(db.ID) != asleep {
				t.Errorf("it sleeps: %v", !asleep)
			}
			if _, err := connectFrom(t, c, "127.0.0.2"); err != nil {
				t.Errorf("an allowed client: %v", err)
			}
		})
	}
}

// Where the port cannot be opened for another reason, its users learn that, and the operator the reason.
func TestSleepAddressMissing(t *testing.T) {
	t.Parallel()
	a := startEngineOn(t, testConfig(t, newDataDir(t)))
	db, _ := a.createDatabase(t, "shop")
	a.letSleep(t, db.ID, time.Hour)
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.cfg.Listen = []string{"192.0.2.1"}
	a = a.reopen(t)
	if reason := a.awaitStatus(t, db.ID, model.DatabaseFailed, time.Minute); !strings.HasPrefix(reason, "port "+strconv.Itoa(db.Port)) || strings.Contains(reason, "192.0.2.1") {
		t.Errorf("the reason is %q", reason)
	}
}

// A database that sleeps is backed up and restored like any other, to moments at which it
// slept, too.
func TestSleepRecovery(t *testing.T) {
	t.Parallel()
	a, db, c, _ := startStepped(t)
	a.letSleep(t, db.ID, time.Hour)
	commitStep(t, c, 2)
	a.sleepOnce(t, db.ID)
	asleep := a.Core.Clock()
	r, err := a.Recovery.RecoveryGet(t.Context(), a.call(model.ActionRecoveryGet), db.ID)
	if err != nil || r.State != recovery.RecoveryAvailable || r.RPO == nil || *r.RPO != 0 || r.Window.Latest == nil || r.Window.Latest.Before(asleep) {
		t.Errorf("%+v, %v", r, err)
	}
	if !a.Databases.IsAsleep(db.ID) {
		t.Error("a look at its recovery woke it")
	}
	b := a.backUp(t, db.ID)
	commitStep(t, c, 3)
	a.sleepOnce(t, db.ID)
	if a.goTo(t, db.ID, recovery.RestorePoint{Time: asleep}); steps(t, c) != "1 2" {
		t.Errorf("steps %s when it slept", steps(t, c))
	}
	a.sleepOnce(t, db.ID)
	if a.restore(t, db.ID, b.ID); steps(t, c) != "1 2" {
		t.Errorf("steps %s of the backup", steps(t, c))
	}
	a.mustHaveNoGap(t, db.ID)
}

// The last backup of a database that sleeps is current however old it is, until somebody
// connects or its verification fails.
func TestBackupOfSleeperIsCurrent(t *testing.T) {
	t.Parallel()
	a := startAdvised(t, nil)
	if err := a.owner.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.letSleep(t, a.db.ID, time.Hour)
	a.sleepOnce(t, a.db.ID)
	a.one("no_backup")
	b := a.backUp(t, a.db.ID)
	a.gone("no_backup")
	a.ahead.Store(int64(2 * time.Hour))
	a.one("backup_old") // the server runs
	age := func() time.Duration {
		t.Helper()
		m, err := a.Insight.Measure()
		if err != nil || m.Each[0].BackupAge == nil {
			t.Fatalf("no age of a backup: %+v, %v", m, err)
		}
		return *m.Each[0].BackupAge
	}
	if age() < time.Hour {
		t.Error("the backup of a server that runs has no age")
	}
	a.sleepOnce(t, a.db.ID)
	a.gone("backup_old")
	if age() != 0 {
		t.Errorf("the backup is %s old, and nothing has changed since", age())
	}
	verified := func(status model.VerificationStatus) {
		t.Helper()
		if err := a.Recovery.UpdateBackup(b.ID, func(b *model.Backup) { b.Verification.Status = status }); err != nil {
			t.Fatal(err)
		}
	}
	verified(model.VerificationFailed)
	a.one("backup_old")
	verified(model.VerificationVerified)
	a.gone("backup_old")
	run(t, a.connection(t), "select")
	a.sleepOnce(t, a.db.ID)
	a.one("backup_old")
}

// sleepOnce makes a database that may sleep do so, and then sleep only when it was unused
// for an hour.
func (a *appliance) sleepOnce(t testing.TB, id string) {
	t.Helper()
	a.sleepSoon(t, id)
	a.edit(t, id, func(d *model.Database) { d.SleepAfter = time.Hour })
}
