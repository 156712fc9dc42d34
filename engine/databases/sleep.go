package databases

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/proxy"
)

// A database whose record says SleepAfter sleeps while no client is connected: its server
// is stopped, and a proxy, which holds its port, starts it again. Everything it ever
// wrote is in the archive by then. The record says how it fell asleep. It is not changed
// when the database wakes: a start compares it with the data directory.

// The limits of SleepAfter.
const (
	MinSleepAfter = 10 * time.Second
	MaxSleepAfter = 7 * 24 * time.Hour
)

// BranchSleepAfter is how long a branch is unused before it sleeps, unless its creation says otherwise: most branches are
// looked at once, and each takes as much memory as its parent.
const BranchSleepAfter = 10 * time.Minute

// SleepOfBranch returns how long a branch of the parent must be unused before it sleeps. asked is what its creation
// says, 0 for never, nil for the default. By default a branch that could not sleep as it is always runs.
func (s *Service) SleepOfBranch(parent model.Database, asked *time.Duration) (time.Duration, error) {
	after := BranchSleepAfter
	if asked != nil {
		after = *asked
	}
	err := validSleep(after)
	if err == nil {
		err = reachesProxied(after, parent.Allowlist)
	}
	if err == nil && after > 0 && slices.Contains(parent.Preload, "pg_cron") {
		err = model.Errorf(model.CodeConflict, "sleep_after_seconds: the jobs of the extension pg_cron would not run while the branch sleeps: set it to 0")
	}
	if err != nil && asked == nil {
		return 0, nil
	}
	return after, err
}

// sleepInterval is how often the appliance checks which databases are idle.
const sleepInterval = time.Second

func validSleep(after time.Duration) error {
	if after == 0 || after >= MinSleepAfter && after <= MaxSleepAfter {
		return nil
	}
	return model.Invalid("sleep_after_seconds", "must be from %d to %d seconds, or the default: a server that always runs",
		int(MinSleepAfter.Seconds()), int(MaxSleepAfter.Seconds()))
}

// wakesNobody refuses what would not work in a database that sleeps: the jobs of pg_cron
// run only while the server does, and nothing starts it for them.
func wakesNobody(db model.Database, extension string) error {
	if db.SleepAfter == 0 || extension != "pg_cron" {
		return nil
	}
	return model.Errorf(model.CodeConflict, "the jobs of pg_cron do not run while a database sleeps: set sleep_after_seconds back to its default first")
}

// reachesProxied refuses that a database sleeps while its allow-list has entries but not
// the address from which its proxy connects. The server cannot tell the proxy from other
// programs of this machine, so it would let in what the list excludes.
func reachesProxied(after time.Duration, allow []netip.Prefix) error {
	proxied := netip.MustParseAddr(postgres.ProxiedHost)
	if after == 0 || len(allow) == 0 || (proxy.Rules{Allow: allow}).Admits(proxied) {
		return nil
	}
	return model.Errorf(model.CodeConflict, "while a database sleeps when it is unused, its allow-list must include %s: "+
		"add that, or set sleep_after_seconds back to its default", postgres.ProxiedHost)
}

// IsAsleep reports whether a database sleeps.
func (s *Service) IsAsleep(id string) bool {
	if !s.Started() {
		return false
	}
	state, _, _ := s.Instances.Status(id)
	return state == postgres.StateAsleep
}

// Rests reports whether a database sleeps and its archive has all of its WAL. While it
// falls asleep, the last of it may be missing.
func (s *Service) Rests(id string) bool {
	_, whole := s.resting.Load(id)
	return whole && s.IsAsleep(id)
}

// RestsSince reports whether a database sleeps and nobody who may have changed it has
// been connected since a backup began: that backup then has everything and counts as
// current, however old it is, unless its verification failed.
func (s *Service) RestsSince(db model.Database, b model.Backup) bool {
	return s.Rests(db.ID) && db.Slept != nil && b.Generation == db.Generation && b.StartedAt.After(db.Slept.Changed) &&
		b.Verification.Status != model.VerificationFailed
}

// Awaken starts the server of a database if it sleeps, and keeps it awake until release
// is called. changes says whether the caller may change the data.
func (s *Service) Awaken(db model.Database, changes bool) (release func(), err error) {
	p := s.proxies.get(db.ID)
	if p == nil {
		return func() {}, nil
	}
	release = p.Hold(changes) // first: it must not fall asleep again
	if err := s.wake(s.core.Lifetime, db.ID); err != nil {
		release()
		return nil, s.doesNotStart(err)
	}
	return release, nil
}

// wake starts the server of a database that sleeps.
func (s *Service) wake(ctx context.Context, id string) error {
	if !s.IsAsleep(id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	return s.Instances.Wake(ctx, id)
}

// receiveAgain receives the WAL of a database that has woken.
func (s *Service) receiveAgain(id string) {
	db, err := s.Record(id)
	if err == nil {
		err = s.backups.ReceiveWAL(db)
	}
	if err != nil {
		s.core.Log.Error("receive the WAL of a database that has woken", "database", id, "error", err)
	}
}

// LetSleep stops the servers of unused databases, until ctx ends.
func (s *Service) LetSleep(ctx context.Context) {
	ticker := time.NewTicker(sleepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.letIdleSleep()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) letIdleSleep() {
	for _, id := range s.proxies.ids() {
		db, err := s.Record(id)
		if err != nil || !s.isIdle(db) || !s.maySuspend() {
			continue
		}
		s.core.Background(func(ctx context.Context) {
			if err := s.fallAsleep(ctx, db); err != nil && ctx.Err() == nil {
				s.core.Log.Warn("let a database sleep", "database", db.ID, "name", db.Name, "error", err)
			}
		})
	}
}

// isIdle reports whether a database has been unused for as long as its record says.
func (s *Service) isIdle(db model.Database) bool {
	p := s.proxies.get(db.ID)
	if p == nil || db.SleepAfter == 0 || s.pending(db) {
		return false
	}
	if status, _ := s.LiveStatus(db); status != model.DatabaseAvailable || s.IsAsleep(db.ID) {
		return false
	}
	usage := p.Usage()
	return usage.Idle && time.Since(usage.Last) >= db.SleepAfter
}

// fallingAsleep describes in its claims what others wait for.
const fallingAsleep = "falling asleep"

// fallAsleep stops the server of an idle database, archives the rest of its WAL and
// records that it sleeps. If the archive cannot have all of the WAL, the server is
// started again.
func (s *Service) fallAsleep(ctx context.Context, db model.Database) error {
	release, err := s.core.Claims.TakeBriefly(db.ID, fallingAsleep)
	if err != nil {
		return nil // busy: it is not idle
	}
	defer release()
	releaseBackups, err := s.core.Claims.TakeBriefly(BackupClaim(db.ID), fallingAsleep)
	if err != nil {
		return nil
	}
	defer releaseBackups()
	if db, err = s.Record(db.ID); err != nil || !s.isIdle(db) {
		return err
	}
	p := s.proxies.get(db.ID)
	s.resting.Delete(db.ID) // since it last slept, it was awake
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Stop)
	defer cancel()
	asleep, err := s.Instances.Sleep(stopping, db.ID, func() bool { return p.Usage().Idle },
		func() error { return s.recordSleep(db, p.Usage().Changed) })
	if !asleep {
		return err
	}
	if err != nil {
		p.Hold(false)() // used just now: it is not tried again at once
		return errors.Join(fmt.Errorf("it stays awake: %w", err), s.wake(ctx, db.ID))
	}
	return nil
}

// recordSleep archives the last WAL of a database whose server was stopped, and records
// that.
func (s *Service) recordSleep(db model.Database, changed time.Time) error {
	if !db.Sandbox {
		if err := s.backups.Drain(db); err != nil {
			return fmt.Errorf("archive the last WAL: %w", err)
		}
	}
	position, err := postgres.ShutdownPosition(s.DataDirectory(db.ID, db.Generation))
	if err != nil {
		return err
	}
	if position == "" {
		return errors.New("the server has not shut down")
	}
	slept := &model.Slept{At: s.core.Clock(), Changed: changed, Position: position}
	if stats, known := s.Statistics.Get(db.ID); known {
		slept.SizeBytes = stats.SizeBytes
	}
	err = s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) { d.Slept = slept })
	})
	if err == nil {
		s.rest(db.ID, *slept)
	}
	return err
}

// hasSlept reports whether a database has not been awake since it fell asleep, and need
// not be started for anything that is pending.
func (s *Service) hasSlept(db model.Database) bool {
	if db.SleepAfter == 0 || db.Slept == nil || db.Status != model.DatabaseAvailable || s.pending(db) {
		return false
	}
	position, err := postgres.ShutdownPosition(s.DataDirectory(db.ID, db.Generation))
	return err == nil && position == db.Slept.Position
}

// startAsleep holds the port of a database that sleeps.
func (s *Service) startAsleep(ctx context.Context, db model.Database) error {
	if _, err := s.renewFor(db); err != nil {
		return err
	}
	db, err := s.holdPort(db, db.Slept.Changed)
	if err != nil {
		return s.retryInBackground(ctx, db, err)
	}
	spec, err := s.servingSpec(ctx, db)
	if err != nil {
		return s.retryInBackground(ctx, db, err)
	}
	s.rest(db.ID, *db.Slept)
	return s.Instances.Register(spec)
}

// StartUnheld starts a database that may sleep and has neither a server nor a proxy, because its port could not be held when
// it was last started.
func (s *Service) StartUnheld(ctx context.Context, db model.Database) error {
	if !s.isUnheld(db) {
		return nil
	}
	release, err := s.core.Claims.Take(db.ID, "its start")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	if db, err = s.Record(db.ID); err != nil || !s.isUnheld(db) {
		return err
	}
	return s.startOrSleepOn(ctx, db)
}

func (s *Service) isUnheld(db model.Database) bool {
	if db.SleepAfter == 0 || db.Trash != nil || db.Status != model.DatabaseAvailable || db.Rebuild {
		return false
	}
	state, _, _ := s.Instances.Status(db.ID)
	return state == postgres.StateStopped && s.proxies.get(db.ID) == nil
}

// rest sets the statistics of a database that sleeps: nobody is connected, and the
// archive has everything.
func (s *Service) rest(id string, slept model.Slept) {
	s.resting.Store(id, true)
	s.Statistics.newest.Store(id, Statistics{At: slept.At, Usage: postgres.Usage{SizeBytes: slept.SizeBytes}, RPO: new(time.Duration)})
}
