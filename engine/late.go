package engine

import "context"

// An instance that could not be started is tried again by its supervisor, and
// comes up when nobody waits for it. What its record was given meanwhile, or
// just before the appliance died, is then not yet in it.

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
// record says, before anybody is told that it is available.
func (e *Engine) receiveLate(id string) {
	if !e.states.isLate(id) {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, startTimeout)
	defer cancel()
	db, err := e.record(id)
	if err == nil {
		err = e.provision(ctx, id, db)
	}
	if err == nil {
		err = e.receiveWAL(db)
	}
	if err != nil {
		e.log.Error("see to the roles of a database that came up late", "database", id, "error", err)
		return
	}
	e.states.arrived(id)
}
