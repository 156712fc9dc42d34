package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	now := e.clock()
	old := db
	db, err = e.beginChange(call, id, func(d *model.Database) {
		e.setPasswords(d, model.GeneratePassword(randomBytes()), model.GeneratePassword(randomBytes()))
		d.UpdatedAt = now
	})
	if err != nil {
		return Rotation{}, err
	}
	terminated, err := e.applyPasswords(ctx, db, terminate)
	if err != nil {
		_, undoErr := e.takeBack(id, func(d *model.Database) {
			d.OwnerPassword, d.ReadOnlyPassword, d.UpdatedAt = old.OwnerPassword, old.ReadOnlyPassword, old.UpdatedAt
		})
		e.resettleRoles(ctx, old)
		return Rotation{}, errors.Join(serverGone(noRoom(err)), undoErr)
	}
	call.Note("sessions_terminated", fmt.Sprint(terminated))
	if db, err = e.endChange(call, id); err != nil {
		return Rotation{}, err
	}
	connection, err := e.connection(db, true)
	return Rotation{Connection: connection, RotatedAt: now, SessionsTerminated: terminated}, err
}

// setPasswords gives the record passwords, sealed.
func (e *Engine) setPasswords(d *model.Database, owner, readOnly model.Secret) {
	d.OwnerPassword = e.sealer.seal(passwordPurpose(d.ID, d.Owner), owner)
	d.ReadOnlyPassword = e.sealer.seal(passwordPurpose(d.ID, d.ReadOnly), readOnly)
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
