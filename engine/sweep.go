package engine

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// sweepInterval is how often the engine removes expired data.
const sweepInterval = time.Minute

// sweep removes expired data at intervals until ctx ends.
func (e *Engine) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if e.Core.ReadOnly() == nil {
			if err := e.sweepOnce(ctx); err != nil {
				e.Core.Log.Error("sweep", "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if e.Core.ReadOnly() == nil { // not before the first interval: the start may need the reserve
			if err := e.fillReserve(); err != nil {
				e.Core.Log.Error("reserve space for the next start", "error", err)
			}
		}
	}
}

// sweepOnce removes expired data. Only one call runs at a time.
func (e *Engine) sweepOnce(ctx context.Context) error {
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	var databases []model.Database
	clockErr := e.Core.KeepClock() // first: expiry depends on it
	err := e.Core.Meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			databases = append(databases, db)
			return nil
		})
	})
	err = errors.Join(clockErr, err, e.Databases.RenewAPICertificate(), e.Objects.ExpireObjects(ctx), e.Objects.PurgeObjects(ctx), e.Objects.PurgeBuckets(ctx), e.Objects.SweepUploads(ctx), e.Core.BackUpMetadata(), e.noteCommits(),
		e.Access.SweepCodes(), e.Access.ConcludeTrials(), e.Core.ExpireIdempotent(), e.Access.ExpireKeys(), e.Core.PruneAudits(), e.Core.PruneEvents(), e.Core.DropDamaged())
	e.Core.Audits.Add(e.Core.Coalescer.NextWindow(e.Core.Clock())...)
	for _, db := range databases {
		err = errors.Join(err, e.sweepDatabase(ctx, db))
	}
	return err
}

// sweepDatabase removes a database whose time is over, and maintains every other.
func (e *Engine) sweepDatabase(ctx context.Context, db model.Database) error {
	switch {
	case db.Trash != nil && e.Databases.TrashExpired(*db.Trash):
		return e.Databases.ExpireTrash(db)
	case db.Status == model.DatabaseDeleting:
		return e.Databases.RetryDelete(ctx, db.ID)
	case db.Trash == nil && db.ExpiresAt != nil && e.Core.MayRemove(*db.ExpiresAt):
		removed, err := e.Databases.ExpireBranch(ctx, db)
		if removed {
			return nil
		}
		return errors.Join(err, e.maintain(ctx, db))
	default:
		return e.maintain(ctx, db)
	}
}

// maintain removes what has expired of a database that stays, and brings its server up to date.
func (e *Engine) maintain(ctx context.Context, db model.Database) (err error) {
	switch {
	case db.Replaced != nil && e.Core.MayRemove(db.Replaced.ExpiresAt):
		err = e.Recovery.DropReplaced(db.ID)
	case db.Trash == nil && db.Status == model.DatabaseAvailable:
		err = errors.Join(e.Databases.StartUnheld(ctx, db), e.Databases.RenewRunning(ctx, db), e.Databases.ApplyPending(ctx, db), e.Recovery.ReopenReceiver(db.ID), e.Databases.UpdateMinor(ctx, db))
	}
	if db.Trash == nil {
		err = errors.Join(err, e.Recovery.NoteSetBack(db), e.Recovery.RecoverRepository(db), e.Recovery.ExpireBackups(db), e.Recovery.PruneWAL(db.ID))
		e.Recovery.CheckArchive(db)
	}
	return err
}
