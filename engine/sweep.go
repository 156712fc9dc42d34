package engine

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// sweepInterval is how often what has outlived its time is looked for.
const sweepInterval = time.Minute

// sweep removes what has outlived its time, until ctx ends.
func (e *Engine) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		if err := e.sweepOnce(ctx); err != nil {
			e.log.Error("sweep", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweepOnce sweeps, one at a time.
func (e *Engine) sweepOnce(ctx context.Context) error {
	e.sweeping.Lock()
	defer e.sweeping.Unlock()
	var databases []model.Database
	clockErr := e.keepClock() // first: what is removed goes by it
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			databases = append(databases, db)
			return nil
		})
	})
	err = errors.Join(clockErr, err, e.renewAPICertificate(), e.expireObjects(ctx), e.purgeObjects(ctx), e.purgeBuckets(ctx), e.sweepUploads(ctx), e.backUpMetadata(), e.noteCommits(),
		e.sweepCodes(), e.concludeTrials(), e.expireOnce(), e.expireKeys(), e.pruneAudits())
	e.audits.add(e.folds.turn(e.clock())...)
	for _, db := range databases {
		switch {
		case db.Trash != nil && e.trashIsOver(*db.Trash):
			err = errors.Join(err, e.expireTrash(db))
		case db.Replaced != nil && e.mayRemove(db.Replaced.ExpiresAt):
			err = errors.Join(err, e.dropReplaced(db.ID))
		case db.Trash == nil && db.Status == model.DatabaseAvailable:
			err = errors.Join(err, e.renewRunning(ctx, db), e.settleLate(ctx, db))
		}
		if db.Trash == nil {
			err = errors.Join(err, e.expireBackups(db), e.pruneWAL(db.ID))
		}
	}
	return err
}

// sweepCodes removes device authorizations, set-up links and sessions that
// can no longer be used.
func (e *Engine) sweepCodes() error {
	now := e.clock()
	return e.meta.Update(func(tx *meta.Tx) error {
		return errors.Join(
			dropWhere(tx.Devices(), func(d model.DeviceAuthorization) (string, bool) { return d.ID, !now.Before(d.ExpiresAt) }),
			dropWhere(tx.SetupLinks(), func(l model.SetupLink) (string, bool) { return string(l.TokenHash), !now.Before(l.ExpiresAt) }),
			dropWhere(tx.Sessions(), func(s model.Session) (string, bool) { return s.TokenHash, !s.Usable(now) }),
		)
	})
}

// dropWhere removes the records of a table that are over, by their ids.
func dropWhere[T any](table meta.Table[T], over func(T) (id string, over bool)) error {
	var ids []string
	if err := table.All(func(record T) error {
		if id, is := over(record); is {
			ids = append(ids, id)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, id := range ids {
		if err := table.Delete(id); err != nil {
			return err
		}
	}
	return nil
}
