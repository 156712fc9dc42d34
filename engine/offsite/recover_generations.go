package offsite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
	"holdfast/engine/offsite/stream"
)

// reserveGenerations has no rebuild use the number of a generation that the copy has, even if that began after what was
// restored: files of WAL are known by generation and position, and this machine would take the other one's for its own.
func (r *firstPhase) reserveGenerations(ctx context.Context, db *meta.DB) error {
	has := r.restorers.known
	if r.partly {
		newest, err := r.history.Find(ctx, time.Time{})
		if err == nil || errors.Is(err, stream.ErrNoPoint) {
			has, err = readKnown(ctx, r.connection.repository, r.history, newest)
		}
		if err == nil { // nothing was missing only because the store is not there
			err = r.connection.repository.CheckMarker(ctx)
		}
		if err != nil {
			return fmt.Errorf("read what the copy has: %w", err)
		}
	}
	return db.Update(func(tx *meta.Tx) error {
		all, err := tx.Databases().Where(func(model.Database) bool { return true })
		if err != nil {
			return err
		}
		for _, d := range all {
			if last := has.lastGeneration(d.ID); last > d.LastGeneration() {
				if err := tx.Databases().Change(d.ID, func(d *model.Database) { d.Begun = last }); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
