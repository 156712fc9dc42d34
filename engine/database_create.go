package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/password"
	"holdfast/engine/postgres"
)

// NewDatabase is what a database is made of.
type NewDatabase struct {
	Project  string
	Name     string
	User     string       // "" means model.DefaultOwner
	Password model.Secret // zero means generated

	sandbox bool
}

// DatabaseCreate makes a database and returns once it accepts connections.
// The name and the port are claimed first; when anything fails after that,
// they are given back and nothing is left.
func (e *Engine) DatabaseCreate(ctx context.Context, call *model.Call, in NewDatabase) (DatabaseView, Connection, error) {
	if err := in.complete(); err != nil {
		return DatabaseView{}, Connection{}, err
	}
	if err := e.onlyOnce(call); err != nil {
		return DatabaseView{}, Connection{}, err
	}
	db, release, err := e.claimDatabase(call, in)
	if err != nil {
		return DatabaseView{}, Connection{}, noRoom(err)
	}
	defer release()
	// A client that goes away does not stop half-way what was begun.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	db, err = e.buildDatabase(ctx, db)
	if err == nil {
		err = e.publishDatabase(call, &db)
	}
	if err != nil {
		err = serverGone(noRoom(e.explainFailed(err)))
		return DatabaseView{}, Connection{}, errors.Join(err, e.forgetDatabase(ctx, call, db, err))
	}
	if err := e.backups.ReceiveWAL(db); err != nil {
		e.log.Error("receive WAL", "database", db.ID, "error", err)
	}
	e.sampleOne(ctx, db)
	view, err := e.view(db)
	if err != nil {
		return view, Connection{}, err
	}
	connection, err := e.connection(db, true)
	return view, connection, err
}

func (in *NewDatabase) complete() error {
	if in.User == "" {
		in.User = model.DefaultOwner
	}
	if err := cmp.Or(model.ValidateDatabaseName("name", in.Name), model.ValidateDatabaseUser("db_user", in.User)); err != nil {
		return err
	}
	if in.Password.IsZero() {
		in.Password = model.GeneratePassword(randomBytes())
		return nil
	}
	if err := password.ForDatabase("password", in.Password, in.Name, in.User); err != nil {
		return err
	}
	return postgres.CheckPassword("password", in.Password)
}

// claimDatabase commits a record in state creating, which holds the name and
// the port.
func (e *Engine) claimDatabase(call *model.Call, in NewDatabase) (model.Database, func(), error) {
	db := e.newDatabase(call, in)
	call.Resource = databaseResource(db)
	release, err := e.claims.take(db.ID, "the creation")
	if err != nil {
		return db, nil, err
	}
	err = e.withPort(func(port int) error {
		db.Port = port
		return e.meta.Update(func(tx *meta.Tx) error { return e.insertDatabase(tx, db) })
	})
	if err != nil {
		release()
	}
	return db, release, err
}

// newDatabase is the record of a database that is to be made, without a port.
func (e *Engine) newDatabase(call *model.Call, in NewDatabase) model.Database {
	now := e.clock()
	db := model.Database{
		ID: e.newID(model.ResourceDatabase), Organization: call.Organization, Project: in.Project, Name: in.Name,
		Status: model.DatabaseCreating, Version: e.binaries.Version, Major: e.binaries.Major,
		Owner: in.User, ReadOnly: model.ReadOnlyUser(in.User),
		Allowlist: e.cfg.Allowlist, AllowlistUpdatedAt: now, AllowlistAppliedAt: now, Generation: 1, CreatedAt: now, UpdatedAt: now,
	}
	if in.sandbox {
		db.Sandbox, db.Settings = true, sandboxSettings()
	}
	db.OwnerPassword = e.sealer.seal(passwordPurpose(db.ID, db.Owner), in.Password)
	db.ReadOnlyPassword = e.sealer.seal(passwordPurpose(db.ID, db.ReadOnly), model.GeneratePassword(randomBytes()))
	return db
}

// insertDatabase claims the record's port, and its name in the project, unless
// the plan allows no more databases.
func (e *Engine) insertDatabase(tx *meta.Tx, db model.Database) error {
	if _, err := projectOf(tx, db.Organization, db.Project); err != nil {
		return err
	}
	if err := e.refuseFullDatabases(tx, db.Organization); err != nil {
		return err
	}
	if err := claimPort(tx, db.Port); err != nil {
		return err
	}
	return e.withinPlan(tx, db.Organization, func() error {
		return nameTaken(tx.Databases().Insert(db), model.ResourceDatabase, db.Name)
	})
}

// buildDatabase turns a spare into the database's running instance. The
// record it returns may have another port.
func (e *Engine) buildDatabase(ctx context.Context, db model.Database) (model.Database, error) {
	if err := os.MkdirAll(e.databaseDirectory(db.ID), 0o700); err != nil {
		return db, fmt.Errorf("make database directory: %w", err)
	}
	dir := e.dataDirectory(db.ID, db.Generation)
	if err := e.spares.Take(ctx, dir); err != nil {
		return db, fmt.Errorf("take spare: %w", err)
	}
	if err := e.issueCertificate(dir); err != nil {
		return db, err
	}
	db, err := e.startInstance(ctx, db)
	if err != nil {
		return db, fmt.Errorf("start instance: %w", err)
	}
	if err := e.provision(ctx, db.ID, db); err != nil {
		return db, fmt.Errorf("provision database: %w", err)
	}
	return db, nil
}

// publishDatabase commits that the database is available.
func (e *Engine) publishDatabase(call *model.Call, db *model.Database) error {
	return e.change(call, func(tx *meta.Tx) error {
		e.claims.ending(db.ID)
		published, err := tx.Databases().Update(db.ID, func(d *model.Database) error {
			d.Status, d.UpdatedAt = model.DatabaseAvailable, e.clock()
			return nil
		})
		if err == nil {
			*db = published
		}
		return err
	})
}

// forgetDatabase undoes a creation that failed with cause, and ends with it the
// operation, if there is one, that was to fill the database.
func (e *Engine) forgetDatabase(ctx context.Context, call *model.Call, db model.Database, cause error) error {
	if err := e.stopInstance(ctx, db.ID); err != nil {
		return err
	}
	if err := e.discard(e.databaseDirectory(db.ID), db.ID); err != nil {
		return fmt.Errorf("remove database directory: %w", err)
	}
	if err := e.backups.RemoveBackups(db.ID); err != nil { // a sweep may have begun them
		return err
	}
	forget := func(tx *meta.Tx) error {
		if db.Operation != "" {
			if err := e.closeOperation(tx, db.Operation, cause); err != nil {
				return err
			}
		}
		return tx.Databases().Delete(db.ID)
	}
	err := e.meta.Update(func(tx *meta.Tx) error {
		if err := forget(tx); err != nil {
			return err
		}
		return e.audit(tx, call, cause)
	})
	return e.recordLater(err, "that a database could not be made", forget)
}

// stopInstance stops the database's instance; one that does not run is fine.
func (e *Engine) stopInstance(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.waits.stop)
	defer cancel()
	err := e.instances.Stop(ctx, id)
	if err != nil && !errors.Is(err, postgres.ErrUnknownInstance) {
		if state, _, pid := e.instances.Status(id); pid != 0 {
			return fmt.Errorf("stop instance (%s): %w", state, err)
		}
		e.log.Warn("instance was stopped by force", "database", id, "error", err)
	}
	e.stats.drop(id)
	e.states.drop(id)
	e.verifiers.drop(id)
	return e.backups.StopReceiving(id)
}
