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

func (e *Engine) sweepOnce(ctx context.Context) error {
	var databases []model.Database
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Databases().All(func(db model.Database) error {
			databases = append(databases, db)
			return nil
		})
	})
	err = errors.Join(err, e.renewAPICertificate(), e.backUpMetadata(), e.concludeTrials(), e.expireOnce(), e.expireKeys(), e.pruneAudits())
	now := e.clock()
	for _, db := range databases {
		switch {
		case db.Trash != nil && !now.Before(db.Trash.Until):
			err = errors.Join(err, e.expireTrash(db))
		case db.Replaced != nil && !now.Before(db.Replaced.ExpiresAt):
			err = errors.Join(err, e.dropReplaced(db.ID))
		case db.Trash == nil && db.Status == model.DatabaseAvailable:
			err = errors.Join(err, e.renewRunning(ctx, db))
		}
		if db.Trash == nil {
			err = errors.Join(err, e.expireBackups(db))
		}
	}
	return err
}
