package databases

import (
	"context"
	"slices"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// updateSleep changes how long a database must be unused before it sleeps. Whether
// clients reach the server directly depends on that, so turning it on or off restarts
// the server. The change is recorded first: an interrupted one is complete with the next
// start, and if the server does not come back at once, the supervisor goes on trying.
func (s *Service) updateSleep(ctx context.Context, call *model.Call, db, next model.Database) (model.Database, error) {
	if next.SleepAfter > 0 && slices.Contains(db.Preload, "pg_cron") {
		return db, model.Errorf(model.CodeConflict, "sleep_after_seconds: the jobs of the extension pg_cron would not run while the database sleeps: drop it first")
	}
	if err := reachesProxied(next.SleepAfter, next.Allowlist); err != nil {
		return db, err
	}
	if err := s.core.Change(call, func(tx *meta.Tx) error { return s.storeUpdate(tx, &next, nil) }); err != nil {
		return db, core.ExplainDiskFull(err)
	}
	if (next.SleepAfter > 0) == (db.SleepAfter > 0) || !s.Started() {
		return next, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeouts.Stop+s.Timeouts.Start)
	defer cancel()
	if err := s.StopInstance(ctx, db.ID); err != nil {
		s.core.Log.Error("stop a database after a change", "database", db.ID, "error", err)
	}
	s.startRecorded(ctx, next)
	return next, nil
}
