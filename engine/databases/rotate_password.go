package databases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Rotation is the result of a password rotation.
type Rotation struct {
	Connection         Connection
	RotatedAt          time.Time
	SessionsTerminated int
}

// RotatePassword sets new passwords for the owner, the read-only role and the role that may replicate. If
// terminate is set, it ends the open sessions.
func (s *Service) RotatePassword(ctx context.Context, call *model.Call, id string, terminate bool) (Rotation, error) {
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return Rotation{}, err
	}
	db, release, err := s.claimAvailable(call, id, "a rotation of the password")
	if err != nil {
		return Rotation{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	now := s.core.Clock()
	old := db
	db, err = s.beginChange(call, id, func(d *model.Database) {
		s.sealPasswords(d, model.GeneratePassword(core.RandomBytes()), model.GeneratePassword(core.RandomBytes()))
		s.setReplication(d, d.LogicalReplication)
		d.UpdatedAt, d.PendingChange.Terminate = now, terminate
	})
	if err != nil {
		return Rotation{}, err
	}
	terminated, err := s.applyPasswords(ctx, db, terminate)
	if err != nil {
		undoErr := s.takeBack(ctx, id, func(d *model.Database) {
			d.OwnerPassword, d.ReadOnlyPassword, d.OwnPassword, d.UpdatedAt = old.OwnerPassword, old.ReadOnlyPassword, old.OwnPassword, old.UpdatedAt
			d.ReplicationPassword = old.ReplicationPassword
		})
		return Rotation{}, errors.Join(ServerFailed(err), undoErr)
	}
	call.Note("sessions_terminated", fmt.Sprint(terminated))
	if db, err = s.concludeChange(call, id); err != nil {
		return Rotation{}, err
	}
	connection, err := s.ConnectionOf(db, true)
	return Rotation{Connection: connection, RotatedAt: now, SessionsTerminated: terminated}, err
}

// sealPasswords encrypts passwords into the record.
func (s *Service) sealPasswords(d *model.Database, owner, readOnly model.Secret) {
	d.OwnPassword = nil
	d.OwnerPassword = s.core.Sealer.Seal(passwordPurpose(d.ID, d.Owner), owner)
	d.ReadOnlyPassword = s.core.Sealer.Seal(passwordPurpose(d.ID, d.ReadOnly), readOnly)
}

// applyPasswords sets the record's passwords in the instance and returns how many
// open sessions it ended.
func (s *Service) applyPasswords(ctx context.Context, db model.Database, terminate bool) (int, error) {
	tenant, err := s.tenant(db)
	if err != nil {
		return 0, err
	}
	if err := s.applyOrRestart(ctx, db.ID, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.SetPasswords(ctx, conn, tenant)
	}); err != nil || !terminate {
		return 0, err
	}
	return s.endSessions(ctx, db)
}
