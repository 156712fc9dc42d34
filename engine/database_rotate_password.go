package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Rotation is the outcome of a rotated password.
type Rotation struct {
	Connection         Connection
	RotatedAt          time.Time
	SessionsTerminated int
}

// DatabaseRotatePassword gives the owner and the read-only role new
// passwords, and ends the open sessions when terminate is set.
func (e *Engine) DatabaseRotatePassword(ctx context.Context, call *model.Call, id string, terminate bool) (Rotation, error) {
	db, release, err := e.claimAvailable(call, id, "a rotation of the password")
	if err != nil {
		return Rotation{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	// The record comes first: if the appliance dies in between, the next start
	// gives the roles the passwords the record has.
	old := db
	db, err = e.recordPasswords(db.ID, model.GeneratePassword(randomBytes()), model.GeneratePassword(randomBytes()))
	if err != nil {
		return Rotation{}, noRoom(err)
	}
	terminated, err := e.applyPasswords(ctx, db, terminate)
	if err != nil {
		err = errors.Join(serverGone(noRoom(err)), e.restorePasswords(old))
		e.resettleRoles(ctx, old)
		return Rotation{}, err
	}
	call.Note("sessions_terminated", fmt.Sprint(terminated))
	now := e.clock()
	err = e.change(call, func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(id, func(d *model.Database) error {
			d.UpdatedAt = now
			return nil
		})
		return err
	})
	if err != nil {
		return Rotation{}, err
	}
	connection, err := e.connection(db, true)
	return Rotation{Connection: connection, RotatedAt: now, SessionsTerminated: terminated}, err
}

func (e *Engine) recordPasswords(id string, owner, readOnly model.Secret) (model.Database, error) {
	var db model.Database
	err := e.meta.Update(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(id, func(d *model.Database) error {
			d.OwnerPassword = e.sealer.seal(passwordPurpose(id, d.Owner), owner)
			d.ReadOnlyPassword = e.sealer.seal(passwordPurpose(id, d.ReadOnly), readOnly)
			return nil
		})
		return err
	})
	return db, err
}

func (e *Engine) restorePasswords(old model.Database) error {
	return e.meta.Update(func(tx *meta.Tx) error {
		_, err := tx.Databases().Update(old.ID, func(d *model.Database) error {
			d.OwnerPassword, d.ReadOnlyPassword = old.OwnerPassword, old.ReadOnlyPassword
			return nil
		})
		return err
	})
}

func (e *Engine) applyPasswords(ctx context.Context, db model.Database, terminate bool) (int, error) {
	tenant, err := e.tenant(db)
	if err != nil {
		return 0, err
	}
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		return 0, fmt.Errorf("connect to instance: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := postgres.SetPasswords(ctx, conn, tenant); err != nil {
		return 0, err
	}
	if !terminate {
		return 0, nil
	}
	return postgres.TerminateSessions(ctx, conn, db.Name)
}
