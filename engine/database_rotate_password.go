package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

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
	if err := e.onlyOnce(call); err != nil {
		return Rotation{}, err
	}
	db, release, err := e.claimAvailable(call, id, "a rotation of the password")
	if err != nil {
		return Rotation{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	now := e.clock()
	old := db
	db, err = e.beginChange(call, id, func(d *model.Database) {
		e.setPasswords(d, model.GeneratePassword(randomBytes()), model.GeneratePassword(randomBytes()))
		d.UpdatedAt, d.Unfinished.Terminate = now, terminate
	})
	if err != nil {
		return Rotation{}, err
	}
	terminated, err := e.applyPasswords(ctx, db, terminate)
	if err != nil {
		_, undoErr := e.takeBack(id, func(d *model.Database) {
			d.OwnerPassword, d.ReadOnlyPassword, d.OwnPassword, d.UpdatedAt = old.OwnerPassword, old.ReadOnlyPassword, old.OwnPassword, old.UpdatedAt
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
	d.OwnPassword = nil
	d.OwnerPassword = e.sealer.seal(passwordPurpose(d.ID, d.Owner), owner)
	d.ReadOnlyPassword = e.sealer.seal(passwordPurpose(d.ID, d.ReadOnly), readOnly)
}

// applyPasswords gives the roles the record's passwords and returns how many
// open sessions it ended.
func (e *Engine) applyPasswords(ctx context.Context, db model.Database, terminate bool) (int, error) {
	tenant, err := e.tenant(db)
	if err != nil {
		return 0, err
	}
	if err := e.insist(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.SetPasswords(ctx, conn, tenant)
	}); err != nil || !terminate {
		return 0, err
	}
	return e.endSessions(ctx, db)
}
