package databases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// NewDatabase describes a database to create.
type NewDatabase struct {
	Project  string
	Name     string
	User     string       // "" means model.DefaultOwner
	Password model.Secret // zero: generate one
	Version  string       // the major version of PostgreSQL, such as "16"; "" means the default

	// LogicalReplication lets clients stream the database's changes.
	LogicalReplication bool

	// SleepAfter is how long no client must be connected before the server stops, 0 = never.
	SleepAfter time.Duration

	Sandbox bool
	// Untrusted means that strangers fill it: its owner is no superuser.
	Untrusted bool
}

// Create creates a database and returns once it accepts connections. It first
// commits a record that reserves the name and the port; if a later step fails, it
// removes the record and everything it created.
func (s *Service) Create(ctx context.Context, call *model.Call, in NewDatabase) (View, Connection, error) {
	if err := in.Complete(); err != nil {
		return View{}, Connection{}, err
	}
	if err := reachesProxied(in.SleepAfter, s.core.Config.Allowlist); err != nil {
		return View{}, Connection{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return View{}, Connection{}, err
	}
	bin, err := s.FindVersion(ctx, "version", in.Version)
	if err != nil {
		return View{}, Connection{}, err
	}
	defer s.warm.begin()()
	db, server, warm := s.newRecord(call, in, bin)
	call.Resource = DatabaseResource(db)
	db, release, err := s.ClaimDatabase(call, db, "the creation", s.core.Meta.Update)
	if err != nil {
		if warm {
			s.warm.put(server)
		}
		return View{}, Connection{}, core.ExplainDiskFull(err)
	}
	defer release()
	// The creation continues if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	if warm {
		db, err = s.handOut(ctx, db, server)
	} else {
		db, err = s.BuildDatabase(ctx, db)
	}
	if err == nil {
		err = s.publishDatabase(call, &db)
	}
	if err != nil {
		err = ServerFailed(s.core.ExplainFailed(err))
		return View{}, Connection{}, errors.Join(err, s.ForgetDatabase(ctx, call, db, err, nil))
	}
	if err := s.backups.ReceiveWAL(db); err != nil {
		s.core.Log.Error("receive WAL", "database", db.ID, "error", err)
	}
	s.backups.BackUpIfOwed(db)
	s.core.Background(func(ctx context.Context) { s.sampleNew(ctx, db) })
	view, err := s.View(db)
	if err != nil {
		return view, Connection{}, err
	}
	connection, err := s.ConnectionOf(db, true)
	return view, connection, err
}

// Complete fills in the defaults and validates the rest.
func (in *NewDatabase) Complete() error {
	if in.User == "" {
		in.User = model.DefaultOwner
	}
	if err := cmp.Or(model.ValidateDatabaseName("name", in.Name), model.ValidateDatabaseUser("db_user", in.User), validSleep(in.SleepAfter)); err != nil {
		return err
	}
	if in.Version != "" {
		if _, err := ParseMajor("version", in.Version); err != nil {
			return err
		}
	}
	if in.Password.IsZero() {
		in.Password = model.GeneratePassword(core.RandomBytes())
		return nil
	}
	if err := password.ForDatabase("password", in.Password, in.Name, in.User); err != nil {
		return err
	}
	return postgres.CheckPassword("password", in.Password)
}

// ClaimDatabase claims the database of a new record and commits the record, which
// reserves the name and a port, unless the record has one. commit runs insert in a transaction, together with
// the caller's other changes, and refuses a call that has lost its authority since. The caller releases the claim.
func (s *Service) ClaimDatabase(
	call *model.Call, db model.Database, what string, commit func(insert func(*meta.Tx) error) error,
) (model.Database, func(), error) {
	release, err := s.core.Claims.Take(db.ID, what)
	if err != nil {
		return db, nil, err
	}
	insert := func(tx *meta.Tx) error {
		if err := s.core.RenewAuthority(tx, call); err != nil {
			return err
		}
		return s.insertDatabase(tx, db)
	}
	if db.Port != 0 {
		err = commit(insert)
	} else {
		err = s.withPort(func(port int) error {
			db.Port = port
			return commit(insert)
		})
	}
	if err != nil {
		release()
	}
	return db, release, err
}

// newRecord returns the record of a database to create, with the id and the port of
// a warm server if there is one of its version.
func (s *Service) newRecord(call *model.Call, in NewDatabase, bin binaries.Set) (db model.Database, server warmServer, warm bool) {
	// A warm server would have to be restarted to replicate, and one that sleeps does not listen on the clients' port.
	if bin.Major == s.Binaries.Major && !in.LogicalReplication && in.SleepAfter == 0 {
		server, warm = s.takeWarm()
	}
	if !warm {
		db = s.NewDatabase(call, in)
		db.Version, db.Major = bin.Version, bin.Major
		return db, server, false
	}
	db = s.recordOf(call, in, server.id)
	db.Port = server.port
	return db, server, true
}

// NewDatabase returns the record of a database to create, without a port.
func (s *Service) NewDatabase(call *model.Call, in NewDatabase) model.Database {
	return s.recordOf(call, in, s.core.NewID(model.ResourceDatabase))
}

func (s *Service) recordOf(call *model.Call, in NewDatabase, id string) model.Database {
	now := s.core.Clock()
	db := model.Database{
		ID: id, Organization: call.Organization, Project: in.Project, Name: in.Name,
		Status: model.DatabaseCreating, Version: s.Binaries.Version, Major: s.Binaries.Major,
		Owner: in.User, ReadOnly: model.ReadOnlyUser(in.User),
		Allowlist: s.core.Config.Allowlist, AllowlistUpdatedAt: now, AllowlistAppliedAt: now, SleepAfter: in.SleepAfter, Generation: 1, CreatedAt: now, UpdatedAt: now,
	}
	if in.Sandbox {
		db.Sandbox, db.Settings = true, sandboxSettings()
		db.Superuser = s.core.Config.SandboxSuperuser && !in.Untrusted
	}
	s.setReplication(&db, in.LogicalReplication)
	db.OwnerPassword = s.core.Sealer.Seal(passwordPurpose(db.ID, db.Owner), in.Password)
	db.ReadOnlyPassword = s.core.Sealer.Seal(passwordPurpose(db.ID, db.ReadOnly), model.GeneratePassword(core.RandomBytes()))
	return db
}

// insertDatabase inserts a record, which reserves its port and its name in the
// project, unless the plan allows no more databases.
func (s *Service) insertDatabase(tx *meta.Tx, db model.Database) error {
	if _, err := core.ProjectOf(tx, db.Organization, db.Project); err != nil {
		return err
	}
	if err := s.refuseFullDatabases(tx, db.Organization); err != nil {
		return err
	}
	if err := s.claimPort(tx, db.Port); err != nil {
		return err
	}
	return s.core.WithinPlan(tx, db.Organization, func() error {
		return core.NameTaken(tx.Databases().Insert(db), model.ResourceDatabase, db.Name)
	})
}

// BuildDatabase turns a prepared directory into the database's running
// instance. The record it returns may have another port.
func (s *Service) BuildDatabase(ctx context.Context, db model.Database) (model.Database, error) {
	if err := os.MkdirAll(s.DatabaseDirectory(db.ID), 0o700); err != nil {
		return db, fmt.Errorf("make database directory: %w", err)
	}
	dir := s.DataDirectory(db.ID, db.Generation)
	if err := s.prepare(ctx, db, dir); err != nil {
		return db, err
	}
	if err := s.IssueCertificate(dir); err != nil {
		return db, err
	}
	db, err := s.StartInstance(ctx, db)
	if err != nil {
		return db, fmt.Errorf("start instance: %w", err)
	}
	provision := s.provisioning(db)
	if !db.LogicalReplication {
		provision = func(ctx context.Context, conn *pgx.Conn) (err error) {
			db.Provisioned, err = s.provisionPrepared(ctx, conn, db)
			return err
		}
	}
	if err := s.maintain(ctx, db.ID, provision); err != nil {
		return db, fmt.Errorf("provision database: %w", err)
	}
	return db, nil
}

// publishDatabase commits that the database is available, unless the call has lost its authority while it was made: its
// password would be the answer.
func (s *Service) publishDatabase(call *model.Call, db *model.Database) error {
	return s.core.Change(call, func(tx *meta.Tx) error {
		if err := s.core.RenewAuthority(tx, call); err != nil {
			return err
		}
		s.core.Claims.Ending(db.ID)
		published, err := tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.Status, d.UpdatedAt, d.Provisioned = model.DatabaseAvailable, s.core.Clock(), db.Provisioned
			return nil
		})
		if err == nil {
			*db = published
		}
		return err
	})
}

// ForgetDatabase undoes a creation that failed with cause, and closes the operation
// that was to fill the database, if there is one. also, if not nil, records further
// changes in the same transaction.
func (s *Service) ForgetDatabase(ctx context.Context, call *model.Call, db model.Database, cause error, also func(*meta.Tx) error) error {
	if err := s.StopInstance(ctx, db.ID); err != nil {
		return err
	}
	if err := s.Discard(s.DatabaseDirectory(db.ID), db.ID); err != nil {
		return fmt.Errorf("remove database directory: %w", err)
	}
	if err := s.backups.RemoveBackups(db.ID); err != nil { // a sweep may have begun a backup
		return err
	}
	forget := func(tx *meta.Tx) error {
		if db.Operation != "" {
			if err := s.CloseOperation(tx, db.Operation, cause); err != nil {
				return err
			}
		}
		if err := purgeRecords(tx, db.ID, db.Operation); err != nil || also == nil {
			return err
		}
		return also(tx)
	}
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		if err := forget(tx); err != nil {
			return err
		}
		return s.core.Audit(tx, call, cause)
	})
	return s.core.RecordLater(err, "that a database could not be made", forget)
}

// StopInstance stops the database's instance and forgets its state. It succeeds
// when the instance does not run. After an error its server may still run and
// acknowledge commits: the caller leaves the data as they are.
func (s *Service) StopInstance(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Stop)
	defer cancel()
	return s.stopInstance(ctx, id)
}

// StopCleanly is StopInstance for data that are used or copied next: much may be unwritten, as after a replay of WAL, and the
// server has the time to write it. It is stopped by force only once ctx ends.
func (s *Service) StopCleanly(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Clean)
	defer cancel()
	return s.stopInstance(ctx, id)
}

func (s *Service) stopInstance(ctx context.Context, id string) error {
	err := s.Instances.Stop(ctx, id)
	switch {
	case errors.Is(err, postgres.ErrUnknownInstance):
		if err := s.stopUnsupervised(ctx, id); err != nil {
			return err
		}
	case errors.Is(err, postgres.ErrMayRun):
		return fmt.Errorf("stop instance: %w", err)
	case err != nil:
		s.core.Log.Warn("instance was stopped by force", "database", id, "error", err)
	}
	if err := s.releasePort(id); err != nil {
		s.core.Log.Warn("release the port of a database", "database", id, "error", err)
	}
	s.Statistics.newest.Delete(id)
	s.States.Drop(id)
	s.resting.Delete(id)
	s.verifiers.drop(id)
	return s.backups.StopReceiving(id)
}

// stopUnsupervised stops the server of a recorded database that the supervisor does
// not know, such as one that an earlier StopInstance could not stop.
func (s *Service) stopUnsupervised(ctx context.Context, id string) error {
	db, err := s.Record(id)
	if errors.Is(err, meta.ErrNotFound) {
		return nil // a private instance: its Start has failed, and left nothing
	}
	if err != nil {
		return err
	}
	return postgres.StopOrphan(ctx, s.DataDirectory(id, db.Generation))
}
