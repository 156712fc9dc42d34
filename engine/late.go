package engine

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

func (s *instanceStates) expectLate(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[id] = true
}

func (s *instanceStates) arrived(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.late, id)
}

func (s *instanceStates) isLate(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.late[id]
}

// receiveLate makes the roles of an instance that came up late what the
// record says, before anybody is told that it is available. It may not hold up
// its supervisor: what takes longer, or force, is left to the next sweep.
func (e *Engine) receiveLate(id string) {
	if !e.states.isLate(id) {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.waits.sessions)
	defer cancel()
	db, err := e.record(id)
	if err == nil {
		err = e.backups.ReceiveWAL(db)
	}
	if err == nil {
		err = e.maintain(ctx, id, e.settingRoles(db))
	}
	if err != nil {
		e.log.Error("see to the roles of a database that came up late", "database", id, "error", err)
		return
	}
	if u := db.Unfinished; u == nil || u.Entry.Action == model.ActionDatabaseSettings {
		e.states.arrived(id) // sessions are to be ended for any other change
	}
}

// settleLate sees to a database that is late though its instance is up.
func (e *Engine) settleLate(ctx context.Context, db model.Database) error {
	if state, _, _ := e.instances.Status(db.ID); !e.states.isLate(db.ID) || state != postgres.StateRunning {
		return nil
	}
	release, err := e.claims.take(db.ID, "the setting of its roles")
	if err != nil {
		return nil // busy: the next sweep is soon enough
	}
	defer release()
	if db, err = e.record(db.ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.seeTo(ctx, db); err != nil {
		return fmt.Errorf("see to the roles of %s: %w", db.ID, err)
	}
	e.states.arrived(db.ID)
	if db.Unfinished != nil {
		return e.settleChange(ctx, db, nil) // which makes it late again when it fails
	}
	return nil
}
