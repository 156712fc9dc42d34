package databases

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Allowlist holds the networks that may connect to a database.
type Allowlist struct {
	Entries            []netip.Prefix
	UpdatedAt          time.Time
	AppliedAt          time.Time
	SessionsTerminated int
}

// AllowlistGet returns the networks that may connect to a database.
func (s *Service) AllowlistGet(call *model.Call, id string) (Allowlist, error) {
	db, err := s.Database(call, id)
	return allowlistOf(db), err
}

func allowlistOf(db model.Database) Allowlist {
	return Allowlist{Entries: db.Allowlist, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: db.AllowlistAppliedAt}
}

// Tag identifies the list.
func (a Allowlist) Tag() string { return model.Tag(model.FormatNetworks(a.Entries)) }

// AllowlistSet replaces the allow-list. When it returns, the new list is in
// force, and open sessions that it excludes have ended.
func (s *Service) AllowlistSet(ctx context.Context, call *model.Call, id string, entries []string) (Allowlist, error) {
	allow, err := model.ParseAllowlist("entries", entries)
	if err != nil {
		return Allowlist{}, err
	}
	db, release, err := s.claimAvailable(call, id, "a change of the allow-list")
	if err != nil {
		return Allowlist{}, err
	}
	defer release()
	if err := call.Match(allowlistOf(db).Tag()); err != nil {
		return Allowlist{}, err
	}
	if err := reachesProxied(db.SleepAfter, allow); err != nil {
		return Allowlist{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Start)
	defer cancel()
	old := db
	call.Note("entries", fmt.Sprint(allow))
	if db, err = s.beginChange(call, id, withAllowlist(allow, s.core.Clock())); err != nil {
		return Allowlist{}, err
	}
	ended, err := s.applyAllowlist(ctx, db)
	if err != nil {
		undoErr := s.takeBack(ctx, id, withAllowlist(old.Allowlist, old.AllowlistUpdatedAt))
		return Allowlist{}, errors.Join(ServerFailed(err), undoErr)
	}
	call.Note("sessions_terminated", fmt.Sprint(ended))
	db, err = s.concludeChange(call, id)
	return Allowlist{Entries: allow, UpdatedAt: db.AllowlistUpdatedAt, AppliedAt: db.AllowlistAppliedAt, SessionsTerminated: ended}, err
}

// withAllowlist returns a function that sets the allow-list of a record.
func withAllowlist(allow []netip.Prefix, at time.Time) func(*model.Database) {
	return func(d *model.Database) { d.Allowlist, d.AllowlistUpdatedAt, d.UpdatedAt = allow, at, at }
}

// applyAllowlist puts the record's list in force and returns how many open sessions
// it ended.
func (s *Service) applyAllowlist(ctx context.Context, db model.Database) (int, error) {
	if err := s.applyAccess(ctx, db); err != nil {
		return 0, fmt.Errorf("apply allow-list: %w", err)
	}
	return s.endSessions(ctx, db, db.Allowlist...)
}

// applyAccess puts the record's access rules in force for new sessions. If the server
// has no free connection on which to confirm that it loaded them, applyAccess restarts
// it immediately with the new rules.
func (s *Service) applyAccess(ctx context.Context, db model.Database) error {
	s.proxies.setRules(db)
	soon, cancel := context.WithTimeout(ctx, s.Timeouts.Sessions)
	defer cancel()
	err := s.Instances.Update(soon, db.ID, Access(db))
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		s.core.Log.Warn("the server does not load changed access rules: restarting it at once", "database", db.ID, "error", err)
		err = s.Instances.Reconfigure(ctx, db.ID, 0, func(it *postgres.Spec) { it.HBA = Access(db) })
	}
	return err
}
