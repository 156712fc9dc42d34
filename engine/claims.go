package engine

import (
	"sync"
	"time"

	"holdfast/engine/model"
)

// claims says which databases something is being done to. One act at a time
// may change a database; the process holds the data directory alone, so
// memory is the right place for it.
type claims struct {
	mu   sync.Mutex
	held map[string]*claim // by id
}

type claim struct {
	what     string // is being done
	ending   bool   // it is recorded as done, or about to be, and only tidies up
	released chan struct{}
}

func newClaims() *claims { return &claims{held: map[string]*claim{}} }

// endingWait is how long an act waits for one that is recorded as done.
const endingWait = 10 * time.Second

// take claims id for what is about to be done ("a restore"), or returns a
// conflict that names what is under way. The caller releases it. Whoever was
// told that an act is done may go on at once: its tidying up is waited for.
func (c *claims) take(id, what string) (release func(), err error) {
	return c.takeAnd(id, what, func() {})
}

// takeAnd is take, and calls taken before anybody can see the claim.
func (c *claims) takeAnd(id, what string, taken func()) (release func(), err error) {
	timeout := time.NewTimer(endingWait)
	defer timeout.Stop()
	for {
		mine, other := c.put(id, what, taken)
		if other == nil {
			return sync.OnceFunc(func() { c.remove(id, mine) }), nil
		}
		if other.ending {
			select {
			case <-other.released:
				continue
			case <-timeout.C:
			}
		}
		return nil, underWay(other.what)
	}
}

// put claims id, or returns a copy of the claim that is there.
func (c *claims) put(id, what string, taken func()) (mine, other *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held[id]; held != nil {
		there := *held
		return nil, &there
	}
	mine = &claim{what: what, released: make(chan struct{})}
	c.held[id] = mine
	taken()
	return mine, nil
}

func (c *claims) remove(id string, mine *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, id)
	close(mine.released)
}

// endClaims says that what an operation's claims are held for is being recorded as
// done. It comes before anybody can see the record, for who sees it may go on at
// once; if it cannot be written after all, others only wait before they are
// refused.
func endClaims(c *claims, op model.DatabaseOperation) {
	backups := backupClaim(op.Database)
	switch {
	case op.Type == model.OperationBackup:
		c.ending(backups)
	case op.NewDatabase != "":
		c.ending(op.NewDatabase, backups)
	case c.sameAct(op.Database, backups):
		c.ending(op.Database, backups)
	default:
		c.ending(op.Database)
	}
}

// ending says that what these are claimed for is being recorded as done.
func (c *claims) ending(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if held := c.held[id]; held != nil {
			held.ending = true
		}
	}
}

// sameAct reports whether two are claimed for the same.
func (c *claims) sameAct(one, other string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, b := c.held[one], c.held[other]
	return a != nil && b != nil && a.what == b.what
}

// holds reports whether id is claimed for what is given.
func (c *claims) holds(id, what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[id] != nil && c.held[id].what == what
}

// claimAvailable claims a database of the call's organization for an act
// that needs it up. The caller releases it.
func (e *Engine) claimAvailable(call *model.Call, id, what string) (model.Database, func(), error) {
	return e.claim(call, id, what, e.liveStatus)
}

// claimWhole claims a database against backups and everything else. Its
// instance may be down. The caller releases it.
func (e *Engine) claimWhole(call *model.Call, id, what string) (model.Database, func(), error) {
	db, release, err := e.claim(call, id, what, func(db model.Database) (model.DatabaseStatus, string) {
		return db.Status, db.StatusReason
	})
	if err != nil {
		return db, nil, err
	}
	releaseBackups, err := e.claimBackups(id, what)
	if err != nil {
		release()
		return db, nil, err
	}
	return db, func() { releaseBackups(); release() }, nil
}

// claimBackups claims a database's backups for what a person asks for, to which
// one that is being made may have to give way. The caller releases them.
func (e *Engine) claimBackups(database, what string) (release func(), err error) {
	e.giveWay(database, what)
	for {
		release, err = e.claims.take(backupClaim(database), what)
		if err == nil || !e.giveWay(database, what) { // none has begun since
			return release, err
		}
	}
}

// giveWay ends the backup of a database for what a person asks for: a scheduled
// one, and for a restore or the deletion any. It may wait for an archive that
// takes in nothing, and that is just when people want to restore. It reports
// whether there was one.
func (e *Engine) giveWay(id, what string) bool {
	if what == deleting {
		return e.cancels.cancel(backupClaim(id), model.Errorf(model.CodeConflict, "the database was deleted"))
	}
	if e.cancels.cancel(scheduledBackup(id), model.Errorf(model.CodeConflict, "it gave way to %s and is tried again later", what)) {
		return true
	}
	return what == restoring &&
		e.cancels.cancel(backupClaim(id), model.Errorf(model.CodeConflict, "it gave way to %s; make another when that is done", what))
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

// notAvailable refuses an act on a database that is not available, and says what
// helps: waiting does in most states, but not in those that do not end by
// themselves.
func notAvailable(status model.DatabaseStatus, reason string) error {
	if reason != "" {
		reason = " (" + reason + ")"
	}
	switch status {
	case model.DatabaseFailed:
		return model.Errorf(model.CodeConflict, "the database has failed%s and needs a person: "+
			"remove the cause and restart it, or restore a backup", reason)
	case model.DatabaseUnavailable:
		return model.Errorf(model.CodeConflict, "the database is unavailable%s and is being brought back; try again when it is available", reason)
	case model.DatabaseDeleting:
		return model.Errorf(model.CodeConflict, "the database is being deleted%s; only the operator can bring it back, from the trash", reason)
	case model.DatabaseCreating, model.DatabaseImporting:
		return model.Errorf(model.CodeConflict, "the database is %s%s and does not exist if that fails; try again when it is available", status, reason)
	default:
		return model.Errorf(model.CodeConflict, "the database is %s%s; try again when it is available", status, reason)
	}
}

// underWay is the conflict with another act that holds a claim.
func underWay(what string) error {
	if what == unsettled {
		return model.Errorf(model.CodeConflict, "what a crash interrupted on this database could not be finished when the appliance started, "+
			"so nothing can be done with it: the operator must remove the cause, which its status names, and restart the appliance")
	}
	return model.Errorf(model.CodeConflict, "%s is under way on this resource; try again when it is done", what)
}
