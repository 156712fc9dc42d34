package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"holdfast/engine/meta"
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
	return Allowlist{Entries: db.Allowlist, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: db.AllowlistUpdatedAt}, err
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
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	// The record comes first: if the appliance dies in between, the next start
	// applies it.
	old := db
	if db, err = e.recordAllowlist(id, allow, e.clock()); err != nil {
		return Allowlist{}, noRoom(err)
	}
	ended, err := e.applyAllowlist(ctx, db)
	if err != nil {
		_, undoErr := e.recordAllowlist(id, old.Allowlist, old.AllowlistUpdatedAt)
		return Allowlist{}, errors.Join(serverGone(noRoom(err)), undoErr, e.instances.Update(ctx, id, access(old)))
	}
	call.Note("entries", fmt.Sprint(allow))
	call.Note("sessions_terminated", fmt.Sprint(ended))
	result := Allowlist{Entries: allow, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: e.clock(), SessionsTerminated: ended}
	return result, e.change(call, func(*meta.Tx) error { return nil })
}

func (e *Engine) recordAllowlist(id string, allow []netip.Prefix, at time.Time) (model.Database, error) {
	var db model.Database
	err := e.meta.Update(func(tx *meta.Tx) (err error) {
		db, err = tx.Databases().Update(id, func(d *model.Database) error {
			d.Allowlist, d.AllowlistUpdatedAt, d.UpdatedAt = allow, at, at
			return nil
		})
		return err
	})
	return db, err
}

// applyAllowlist puts the record's list in force and returns how many open
// sessions it ended.
func (e *Engine) applyAllowlist(ctx context.Context, db model.Database) (int, error) {
	if err := e.instances.Update(ctx, db.ID, access(db)); err != nil {
		return 0, fmt.Errorf("apply allow-list: %w", err)
	}
	conn, err := e.instances.Connect(ctx, db.ID, maintenance)
	if err != nil {
		return 0, fmt.Errorf("connect to instance: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	sessions, err := postgres.Sessions(ctx, conn, db.Name)
	if err != nil {
		return 0, err
	}
	var keep []int
	for _, s := range sessions {
		if slices.ContainsFunc(db.Allowlist, func(p netip.Prefix) bool { return p.Contains(s.Address) }) {
			keep = append(keep, s.PID)
		}
	}
	if len(keep) == len(sessions) {
		return 0, nil
	}
	return postgres.TerminateSessions(ctx, conn, db.Name, keep...)
}
