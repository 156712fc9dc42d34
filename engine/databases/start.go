package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// parallelStarts is how many instances are started at a time.
const parallelStarts = 4

// startClaim is held on a database while the starting appliance starts it.
const startClaim = "the start"

// claimedStart is a database to start.
type claimedStart struct {
	database string
	release  func()
}

// ClaimStarts claims every database for its start, those with an id in first before the
// others. It must run before the first request is served: a request that claimed a
// database first would prevent its start.
func (s *Service) ClaimStarts(first []string) (starts []claimedStart, err error) {
	databases, err := s.KeptDatabases()
	if err != nil {
		return nil, fmt.Errorf("list databases to start: %w", err)
	}
	for _, db := range databases {
		if s.core.Claims.Holds(db.ID, core.Unrecovered) || db.Status == model.DatabaseImporting { // its import starts it
			continue
		}
		release, err := s.core.Claims.Take(db.ID, startClaim)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", db.ID, err)
		}
		starts = append(starts, claimedStart{db.ID, release})
	}
	rank := func(s claimedStart) int {
		if i := slices.Index(first, s.database); i >= 0 {
			return i
		}
		return len(first)
	}
	slices.SortStableFunc(starts, func(a, b claimedStart) int { return cmp.Compare(rank(a), rank(b)) })
	return starts, nil
}

// StartDatabases starts the claimed databases and releases them.
func (s *Service) StartDatabases(ctx context.Context, starts []claimedStart) {
	slots := make(chan struct{}, parallelStarts)
	var all sync.WaitGroup
	for _, start := range starts {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			defer start.release()
			s.startAtBoot(ctx, start.database)
		})
	}
	all.Wait()
}

// AwaitStart waits for as long as ctx lasts until a database is not being started with the appliance, which makes it
// unavailable, running or not.
func (s *Service) AwaitStart(ctx context.Context, id string) {
	s.core.Claims.Await(ctx, id, startClaim)
}

func (s *Service) startAtBoot(ctx context.Context, id string) {
	db, err := s.Record(id)
	if err != nil {
		s.core.Log.Error("start database", "database", id, "error", err)
		return
	}
	if db.Rebuild {
		if err := s.backups.Rebuild(ctx, db); err != nil && ctx.Err() == nil {
			s.core.Log.Error("rebuild database", "database", db.ID, "name", db.Name, "error", err)
		}
		return
	}
	err = s.startOrSleepOn(ctx, db)
	if db.PendingChange != nil && ctx.Err() == nil {
		err = s.recoverChange(ctx, db, err)
	}
	if err != nil && ctx.Err() == nil {
		s.core.Log.Error("start database", "database", db.ID, "name", db.Name, "error", err)
	}
	s.backups.BackUpIfOwed(db)
}

// startOrSleepOn starts a database, unless it has not been awake since it fell asleep.
func (s *Service) startOrSleepOn(ctx context.Context, db model.Database) error {
	if s.hasSlept(db) {
		return s.startAsleep(ctx, db)
	}
	return s.StartDatabase(ctx, db)
}

// StartDatabase starts the database's instance, or adopts it if it already runs,
// receives its WAL and sets its roles from the record. Failed steps are retried in
// the background.
func (s *Service) StartDatabase(ctx context.Context, db model.Database) error {
	if db.Rebuild { // the supervisor would try for ever, and hide why the data is not here
		status, reason := s.LiveStatus(db)
		return NotAvailable(db, status, reason)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	if _, err := s.renewFor(db); err != nil {
		return s.retryInBackground(ctx, db, err)
	}
	db, err := s.StartInstance(ctx, db)
	if err != nil {
		return s.retryInBackground(ctx, db, err)
	}
	if err := s.receiveAndSetRoles(ctx, db); err != nil {
		s.States.setRolesPending(db.ID)
		return err
	}
	s.SampleOne(ctx, db)
	return nil
}

// startRecorded is StartDatabase after a change that is recorded. A failure does not undo the change: it is logged, and
// the database's status says why it is not available yet.
func (s *Service) startRecorded(ctx context.Context, db model.Database) {
	if err := s.StartDatabase(ctx, db); err != nil {
		s.core.Log.Error("start a database after a change", "database", db.ID, "error", err)
	}
}

// receiveAndSetRoles makes a running instance available: it receives its WAL and
// sets its roles, each even if the other fails.
func (s *Service) receiveAndSetRoles(ctx context.Context, db model.Database) error {
	err := s.backups.ReceiveWAL(db)
	if err != nil {
		err = fmt.Errorf("receive WAL: %w", err)
	}
	return errors.Join(err, s.setRoles(ctx, db))
}

// setRoles sets the roles of an instance that has just been started from the
// record, and notes passwords that were changed with SQL.
func (s *Service) setRoles(ctx context.Context, db model.Database) error {
	if err := s.applyOrRestart(ctx, db.ID, s.reconcileRoles(db)); err != nil {
		return fmt.Errorf("set the roles: %w", err)
	}
	return nil
}

// setRolesOrRetryLater is setRoles for a restarted instance. If it fails, the roles
// are pending, see pending_roles.go.
func (s *Service) setRolesOrRetryLater(ctx context.Context, db model.Database) {
	if err := s.setRoles(ctx, db); err != nil {
		s.core.Log.Error("set the roles of a database that was restarted", "database", db.ID, "error", err)
		s.States.setRolesPending(db.ID)
	}
}

// StartInstance starts the database's instance, on another port if a foreign
// process uses its own. The record it returns has the port.
func (s *Service) StartInstance(ctx context.Context, db model.Database) (model.Database, error) {
	db, err := s.holdPort(db, time.Time{})
	if err != nil {
		return db, err
	}
	spec, err := s.servingSpec(ctx, db)
	if err != nil {
		return db, err
	}
	keepDefaults(spec.Config.Settings, db, spec.Dir)
	if err := s.Instances.Start(ctx, spec); err != nil {
		return db, err
	}
	now, err := s.Record(db.ID)
	db.Port = now.Port
	return db, err
}

// retryInBackground makes the supervisor keep trying to start an instance. If its
// binaries are missing, the database is failed until a user restarts it. So it is without the proxy that it needs, until
// [Service.StartUnheld] can open that: the server would refuse its clients.
func (s *Service) retryInBackground(ctx context.Context, db model.Database, cause error) error {
	if db.SleepAfter > 0 {
		held, err := s.holdPort(db, time.Time{})
		if err != nil {
			s.HandleInstanceState(db.ID, postgres.StateFailed, model.PublicMessage(err))
			return cause
		}
		db = held
	}
	spec, err := s.servingSpec(ctx, db)
	if err != nil {
		s.HandleInstanceState(db.ID, postgres.StateFailed, model.PublicMessage(err))
		return err
	}
	s.States.setRolesPending(db.ID)
	if err := s.Instances.Keep(spec); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// portTaken moves a database to another port, because a foreign process uses its
// own.
func (s *Service) portTaken(id string) (int, error) {
	db, err := s.Record(id)
	if err != nil {
		return 0, err // an instance that is being built has no TCP port
	}
	moved := db
	call := s.core.System(model.ActionInstanceMoved, db.Organization, DatabaseResource(db))
	err = s.withPort(func(port int) error {
		call.Details = map[string]string{"from": fmt.Sprint(db.Port), "to": fmt.Sprint(port)}
		return s.core.Change(call, func(tx *meta.Tx) error {
			if err := s.claimPort(tx, port); err != nil {
				return err
			}
			moved, err = tx.Databases().Update(db.ID, func(d *model.Database) error {
				d.Port, d.UpdatedAt = port, s.core.Clock()
				return nil
			})
			return err
		})
	})
	if err == nil {
		s.core.Log.Warn("another process has the database's port: moved", "database", db.ID, "name", db.Name, "from", db.Port, "to", moved.Port)
	}
	return moved.Port, err
}

// StartPostgres finds the binaries and sets up the authority, the supervisor and
// the warm pool. It starts no database.
func (s *Service) StartPostgres(ctx context.Context) error {
	var err error
	if s.Binaries, err = s.core.Config.Search.Find(ctx); err != nil {
		return fmt.Errorf("find PostgreSQL: %w", err)
	}
	s.Majors = newMajors(s.core.Config.Search, s.Binaries)
	if err := s.loadAuthority(); err != nil {
		return fmt.Errorf("load certificate authority: %w", err)
	}
	if s.SocketDir, err = postgres.SocketDir(s.core.Config.DataDir); err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	s.Instances = postgres.NewSupervisor(postgres.SupervisorOptions{
		Log: s.core.Log, Changed: s.HandleInstanceState, PortTaken: s.portTaken,
	})
	s.WarmPool, err = postgres.NewWarmPool(postgres.WarmPoolOptions{
		Dir:       s.warmDirectory(),
		Want:      s.preparedAhead(),
		Bin:       s.Binaries,
		SocketDir: s.SocketDir,
		Log:       s.core.Log,
		HasSpace:  s.core.FreeSpaceForWarmPool,
		Await:     s.awaitCalm,
	})
	if err != nil {
		return fmt.Errorf("open warm pool: %w", err)
	}
	return nil
}

// Started reports whether the appliance runs instances, as opposed to only having
// its files open.
func (s *Service) Started() bool { return s.Instances != nil }
