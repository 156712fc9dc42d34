package imports

import (
	"context"
	"fmt"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/model"
)

// publish is publishImport, again and again for an import that was cut over: its slot is gone, so it is not rolled back.
func (s *Service) publish(ctx context.Context, r *importRun) error {
	for {
		err := s.publishImport(ctx, r)
		if err == nil || r.account.Snapshot().Follow == nil || ctx.Err() != nil {
			return err
		}
		s.core.Log.Warn("open a database that was cut over", "database", r.db.ID, "error", err)
		select {
		case <-time.After(followRetry):
		case <-ctx.Done():
		}
	}
}

// dropSlot drops the slot at the source, or returns that it remains.
func (s *Service) dropSlot(ctx context.Context, r *importRun) (remains string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropPatience)
	defer cancel()
	slot := r.account.Snapshot().Follow.Slot
	if err := importer.DropSlot(ctx, r.source, slot); err != nil {
		remains = fmt.Sprintf("%s (%s)", slotMayRemain(slot), databases.OperationMessage(err))
		r.account.Say(model.ImportWarning, remains)
		return remains
	}
	r.account.Say(model.ImportInfo, "dropped the replication slot "+slot+" at the source")
	return ""
}

// slotMayRemain says that a slot may remain at the source, and how to drop it.
func slotMayRemain(slot string) string {
	return fmt.Sprintf("the replication slot %s may remain at the source and keep its write-ahead log; drop it there with %s", slot, importer.DropStatement(slot))
}

// ended returns what the record says of following when it is over.
func (r *importRun) ended(follow model.ImportFollow, now time.Time) *model.ImportFollow {
	switch {
	case r.request != nil:
		follow.Pause = time.Since(r.request.began)
	case follow.CutoverStartedAt != nil: // the appliance was started since
		follow.Pause = now.Sub(*follow.CutoverStartedAt)
	}
	follow.SourceURL, follow.Lag, follow.StaleViews, follow.Trouble = nil, nil, nil, ""
	return &follow
}
