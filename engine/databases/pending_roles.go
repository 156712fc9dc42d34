package databases

import (
	"context"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// The roles of an instance are pending while they may differ from its record:
// because the supervisor is still trying to start the instance, because the record
// is changing, or because the instance runs but its roles could not be set. The
// database is not available until the roles are set, which happens when the
// instance starts or with the next sweep.

func (s *instanceStates) setRolesPending(id string) { s.pendingRoles.Store(id, nil) }

func (s *instanceStates) clearRolesPending(id string) { s.pendingRoles.Delete(id) }

func (s *instanceStates) rolesPending(id string) bool {
	_, pending := s.pendingRoles.Load(id)
	return pending
}

// applyPendingRolesOnStart sets the pending roles of an instance that has started,
// before the database is reported as available. The supervisor waits for it, so
// anything that takes longer, or needs force, is left to the next sweep.
func (s *Service) applyPendingRolesOnStart(id string) {
	if !s.States.rolesPending(id) {
		return
	}
	ctx, cancel := context.WithTimeout(s.core.Lifetime, s.Timeouts.Sessions)
	defer cancel()
	db, err := s.Record(id)
	if err == nil {
		err = s.backups.ReceiveWAL(db)
	}
	if err == nil {
		err = s.maintain(ctx, id, s.reconcileRoles(db))
	}
	if err != nil {
		s.core.Log.Error("set the pending roles of a database that has come up", "database", id, "error", err)
		return
	}
	if u := db.PendingChange; u == nil || u.Entry.Action == model.ActionDatabaseSettings {
		s.States.clearRolesPending(id) // any other change still has sessions to end
	}
}

// ApplyPendingRoles sets the pending roles of a database whose instance is running.
func (s *Service) ApplyPendingRoles(ctx context.Context, db model.Database) error {
	if state, _, _ := s.Instances.Status(db.ID); !s.States.rolesPending(db.ID) || state != postgres.StateRunning {
		return nil
	}
	release, err := s.core.Claims.Take(db.ID, "the setting of its roles")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	if db, err = s.Record(db.ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	if err := s.receiveAndSetRoles(ctx, db); err != nil {
		return fmt.Errorf("set the roles of %s: %w", db.ID, err)
	}
	s.States.clearRolesPending(db.ID)
	if db.PendingChange != nil {
		return s.recoverChange(ctx, db, nil) // a failure makes the roles pending again
	}
	return nil
}

// restoreRoles sets the roles of an instance from the record again, after a change
// failed half-way. If it cannot, they stay pending, see pending_roles.go.
func (s *Service) restoreRoles(ctx context.Context, db model.Database) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Sessions) // ctx may have expired
	defer cancel()
	s.States.setRolesPending(db.ID) // first: the instance may start in between
	if err := s.Provision(ctx, db.ID, db); err != nil {
		s.core.Log.Warn("the roles are set later", "database", db.ID, "error", err)
		return
	}
	s.States.clearRolesPending(db.ID)
}
