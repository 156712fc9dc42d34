package databases

import (
	"context"
	"errors"
	"fmt"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// The roles of an instance are pending while they may differ from its record:
// because the supervisor is still trying to start the instance, because the record
// is changing, or because the instance runs but its roles could not be set. The
// database is not available until the roles are set, which happens when the
// instance starts or with the next sweep. The sweep also applies access rules that a
// failed change may have left in force, and ends changes that are still pending
// although the instance runs.

func (s *instanceStates) setRolesPending(id string) { s.pendingRoles.LoadOrStore(id, false) }

// setAccessPending makes the roles pending and with them the access rules, which a start
// or the sweep applies.
func (s *instanceStates) setAccessPending(id string) { s.pendingRoles.Store(id, true) }

func (s *instanceStates) accessPending(id string) bool {
	found, _ := s.pendingRoles.Load(id)
	access, _ := found.(bool)
	return access
}

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
		if s.core.Lifetime.Err() == nil { // the next start sets them
			s.core.Log.Error("set the pending roles of a database that has come up", "database", id, "error", err)
		}
		return
	}
	rules, err := s.Instances.Rules(id)
	inForce := !s.States.accessPending(id) || err == nil && rules.Equal(Access(db)) // by the start
	db = s.inForce(db)
	takenBack := db.PendingChange != nil && db.PendingChange.TakenBack
	if inForce && (db.PendingChange == nil || takenBack || changesSettings(db)) {
		s.States.clearRolesPending(id) // any other change still has sessions to end
	}
	if inForce && takenBack {
		if err := s.forgetTakenBack(id); err != nil {
			s.core.Log.Error("record that a change was taken back", "database", id, "error", err)
		}
	}
}

// ApplyPending makes an instance follow its record, if its roles or a change are
// pending. Unless the change is one of settings, the instance must be running. What is
// pending of a database whose data is not here waits for that.
func (s *Service) ApplyPending(ctx context.Context, db model.Database) error {
	if db.Rebuild {
		return nil
	}
	db = s.inForce(db)
	if state, _, _ := s.Instances.Status(db.ID); !s.pending(db) || s.isTakingBack(db.ID) || state != postgres.StateRunning && !changesSettings(db) {
		return nil
	}
	release, err := s.core.Claims.TakeBriefly(db.ID, "what is pending")
	if err != nil {
		return nil // busy: the next sweep tries again
	}
	defer release()
	if db, err = s.Record(db.ID); err != nil {
		return err
	}
	if db = s.inForce(db); !s.pending(db) {
		return nil
	}
	if changesSettings(db) {
		return s.recoverChange(ctx, db, s.applySettings(ctx, db))
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeouts.Start)
	defer cancel()
	if err = errors.Join(s.applyAccess(ctx, db), s.receiveAndSetRoles(ctx, db)); err != nil {
		err = fmt.Errorf("apply what is pending of %s: %w", db.ID, err)
	} else {
		s.States.clearRolesPending(db.ID)
	}
	if db.PendingChange != nil {
		return s.recoverChange(ctx, db, err) // a failure makes the roles pending again
	}
	return err
}

// changesSettings reports whether settings or a library are pending, which only a start applies.
func changesSettings(db model.Database) bool {
	return db.PendingChange != nil && isSettings(db.PendingChange.Entry.Action)
}

// isSettings reports whether an action changes settings, the operator's or others, or the libraries of extensions.
func isSettings(a model.Action) bool {
	return a == model.ActionDatabaseSettings || a == model.ActionSettingsUpdate || a == model.ActionExtensionSet
}

// pending reports whether the instance may differ from its record. An operation that
// is about to end that holds the claim.
func (s *Service) pending(db model.Database) bool {
	return db.PendingChange != nil || s.States.rolesPending(db.ID)
}

// restoreAccess makes an instance admit those that its record names, after a change of
// the record that failed half-way and was reverted. If it cannot, it returns false, and that stays pending.
func (s *Service) restoreAccess(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Stop) // ctx may have expired
	defer cancel()
	s.States.setAccessPending(id) // first: the instance may start in between
	db, err := s.Record(id)
	if err == nil {
		err = s.applyAccess(ctx, db)
	}
	if err == nil {
		err = s.Provision(ctx, id, db)
	}
	if err == nil {
		err = s.backups.ReceiveWAL(db) // what failed may have been the start, which receives it
	}
	if err != nil {
		s.core.Log.Warn("access rules and roles are set later", "database", id, "error", err)
		return false
	}
	s.States.clearRolesPending(id)
	return true
}
