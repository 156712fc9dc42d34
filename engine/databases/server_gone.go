package databases

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// serverGone tells a client that the server died under what was asked for, or
// had no place for the appliance, and leaves every other error as it is. One that
// died is brought back by itself.
func serverGone(err error) error {
	switch {
	case err == nil || model.CodeOf(err) != model.CodeInternal:
		return err
	case postgres.IsFull(err):
		return &model.Error{Code: model.CodeConflict, Message: "all connections of this database are taken, those that are being opened " +
			"among them; try again, and bound the pools of its clients below max_connections", Err: err}
	case !postgres.IsGone(err):
		return err
	}
	return &model.Error{Code: model.CodeConflict, Message: "the database's server went down meanwhile; try again when it is available", Err: err}
}

// restoreRoles makes the roles of an instance what the record says, after a
// change of them has failed half-way: now, or later, see pending_roles.go.
func (s *Service) restoreRoles(ctx context.Context, db model.Database) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Sessions) // the time of the change may be up
	defer cancel()
	s.States.setRolesPending(db.ID) // first: it may come up meanwhile
	if err := s.Provision(ctx, db.ID, db); err != nil {
		s.core.Log.Warn("the roles are seen to later", "database", db.ID, "error", err)
		return
	}
	s.States.clearRolesPending(db.ID)
}
