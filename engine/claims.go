package engine

import (
	"sync"

	"holdfast/engine/model"
)

// claims says which databases something is being done to. One act at a time
// may change a database; the process holds the data directory alone, so
// memory is the right place for it.
type claims struct {
	mu   sync.Mutex
	held map[string]string // what is being done, by id
}

func newClaims() *claims { return &claims{held: map[string]string{}} }

// take claims id for what is about to be done ("a restore"), or returns a
// conflict that names what is under way. The caller releases it.
func (c *claims) take(id, what string) (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if busy, held := c.held[id]; held {
		return nil, model.Errorf(model.CodeConflict, "%s is under way on this resource; try again when it is done", busy)
	}
	c.held[id] = what
	var once sync.Once
	return func() {
		once.Do(func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.held, id)
		})
	}, nil
}

// holds reports whether id is claimed for what is given.
func (c *claims) holds(id, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id] == what
}

// claimAvailable claims a database of the call's organization for an act
// that needs it up. The caller releases it.
func (e *Engine) claimAvailable(call *model.Call, id, what string) (model.Database, func(), error) {
	return e.claim(call, id, what, e.liveStatus)
}

// claimWhole claims a database against backups and everything else; a
// scheduled backup is cancelled. Its instance may be down. The caller releases
// it.
func (e *Engine) claimWhole(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := e.claim(call, id, what, func(db model.Database) (model.DatabaseStatus, string) {
		return db.Status, db.StatusReason
	})
	if err != nil {
		return db, nil, err
	}
	// What a person asks for goes before what the appliance does by itself.
	e.cancels.cancel(scheduledBackup(id), model.Errorf(model.CodeConflict, "it gave way to %s and is tried again later", what))
	releaseBackup, err := e.claims.take(backupClaim(id), what)
	if err != nil {
		release()
		return db, nil, err
	}
	return db, func() { releaseBackup(); release() }, nil
}

func (e *Engine) claim(
	call *model.Call, id, what string, status func(model.Database) (model.DatabaseStatus, string),
) (model.Database, func(), error) {
	if _, err := e.database(call, id); err != nil {
		return model.Database{}, nil, err
	}
	release, err := e.claims.take(id, what)
	if err != nil {
		return model.Database{}, nil, err
	}
	db, err := e.database(call, id) // as it is now that it is ours
	if err == nil {
		if now, reason := status(db); now != model.DatabaseAvailable {
			err = notAvailable(now, reason)
		}
	}
	if err != nil {
		release()
		return model.Database{}, nil, err
	}
	return db, release, nil
}

func notAvailable(status model.DatabaseStatus, reason string) error {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	return model.Errorf(model.CodeConflict, "the database is %s%s; try again when it is available", status, reason)
}
