package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Allowlist is who may connect to a database.
type Allowlist struct {
	Entries            []netip.Prefix
	UpdatedAt          time.Time
	AppliedAt          time.Time
	SessionsTerminated int
}

// AllowlistGet returns who may connect to a database.
func (e *Engine) AllowlistGet(call *model.Call, id string) (Allowlist, error) {
	db, err := e.database(call, id)
	return Allowlist{Entries: db.Allowlist, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: db.AllowlistAppliedAt}, err
}

// AllowlistSet replaces who may connect. It is in force, on open sessions
// too, when this returns.
func (e *Engine) AllowlistSet(ctx context.Context, call *model.Call, id string, entries []string) (Allowlist, error) {
	allow, err := model.ParseAllowlist("entries", entries)
	if err != nil {
		return Allowlist{}, err
	}
	db, release, err := e.claimAvailable(call, id, "a change of the allow-list")
	if err != nil {
		return Allowlist{}, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	old := db
	call.Note("entries", fmt.Sprint(allow))
	if db, err = e.beginChange(call, id, newAllowlist(allow, e.clock())); err != nil {
		return Allowlist{}, err
	}
	ended, err := e.applyAllowlist(ctx, db)
	if err != nil {
		_, undoErr := e.takeBack(id, newAllowlist(old.Allowlist, old.AllowlistUpdatedAt))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.waits.stop) // the time of the change may be up
		defer cancel()
		return Allowlist{}, errors.Join(serverGone(noRoom(err)), undoErr, e.instances.Update(ctx, id, access(old)))
	}
	call.Note("sessions_terminated", fmt.Sprint(ended))
	db, err = e.endChange(call, id)
	return Allowlist{Entries: allow, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: db.AllowlistAppliedAt, SessionsTerminated: ended}, err
}

func newAllowlist(allow []netip.Prefix, at time.Time) func(*model.Database) {
	return func(d *model.Database) { d.Allowlist, d.AllowlistUpdatedAt, d.UpdatedAt = allow, at, at }
}

// applyAllowlist puts the record's list in force and returns how many open
// sessions it ended. A server that cannot be seen to follow, because it has no place
// for who would look, is stopped at once and begins anew with the list.
func (e *Engine) applyAllowlist(ctx context.Context, db model.Database) (int, error) {
	soon, cancel := context.WithTimeout(ctx, e.waits.sessions)
	defer cancel()
	err := e.instances.Update(soon, db.ID, access(db))
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		e.log.Warn("an allow-list is held up: stopping the server at once", "database", db.ID, "error", err)
		err = e.instances.Reconfigure(ctx, db.ID, 0, func(s *postgres.Spec) { s.HBA = access(db) })
	}
	if err != nil {
		return 0, fmt.Errorf("apply allow-list: %w", err)
	}
	return e.endSessions(ctx, db, db.Allowlist...)
}
