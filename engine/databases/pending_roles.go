package databases

import (
	"context"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// An instance that could not be started is tried again by its supervisor, and
// comes up when nobody waits for it. What its record was given meanwhile, or
// just before the appliance died, is then not yet in it; nor is it when the
// instance is up, but something kept its roles from being seen to. Such a database
// is late, and not available, until the instance is what the record says: when
// it comes up, or with the next sweep.

func (s *InstanceStates) setRolesPending(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingRoles[id] = true
}

func (s *InstanceStates) clearRolesPending(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pendingRoles, id)
}

func (s *InstanceStates) rolesPending(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.pendingRoles[id]
}

// applyPendingRolesOnStart makes the roles of an instance that came up late what the
// record says, before anybody is told that it is available. It may not hold up
// its supervisor: what takes longer, or force, is left to the next sweep.
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
		s.core.Log.Error("see to the roles of a database that came up late", "database", id, "error", err)
		return
	}
	if u := db.PendingChange; u == nil || u.Entry.Action == model.ActionDatabaseSettings {
		s.States.clearRolesPending(id) // sessions are to be ended for any other change
	}
}

// ApplyPendingRoles sees to a database that is late though its instance is up.
func (s *Service) ApplyPendingRoles(ctx context.Context, db model.Database) error {
	if state, _, _ := s.Instances.Status(db.ID); !s.States.rolesPending(db.ID) || state != postgres.StateRunning {
		return nil
	}
	release, err := s.core.Claims.Take(db.ID, "the setting of its roles")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	if db, err = s.Record(db.ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()
	if err := s.receiveAndSetRoles(ctx, db); err != nil {
		return fmt.Errorf("see to the roles of %s: %w", db.ID, err)
	}
	s.States.clearRolesPending(db.ID)
	if db.PendingChange != nil {
		return s.recoverChange(ctx, db, nil) // which makes it late again when it fails
	}
	return nil
}
