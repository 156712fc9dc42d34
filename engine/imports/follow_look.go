package imports

import (
	"context"
	"errors"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// lookTimeout bounds one look at both servers.
const lookTimeout = time.Minute

// failureShown is how long the last failure of the server's worker is shown: it tries again every second or so.
const failureShown = 10 * time.Second

// beginningTime is how long the worker may take to begin, without trouble.
const beginningTime = 5 * time.Second

// look returns why the new database does not follow now, nil if it does. again says that it must subscribe again.
func (f *follower) look(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if full, err := f.pauseOnFullDisk(ctx); full || err != nil {
		return false, err
	}
	state, err := f.service.databases.SubscriptionState(ctx, f.db, f.follow().Slot)
	if err != nil {
		return false, model.Errorf(model.CodeConflict, "the new database's server does not answer, and is tried again: %v", core.ExplainDiskFull(err))
	}
	if !state.Exists || !state.Enabled {
		return true, errors.New("the subscription is gone or disabled: subscribing again")
	}
	active, err := f.source.Poll(ctx)
	if err != nil {
		return false, err
	}
	f.compare(ctx)
	if f.changed != nil {
		return false, f.changed
	}
	return false, f.explain(state, active)
}

// explain returns why no worker reads the slot, or why it fails again and again.
func (f *follower) explain(state postgres.SubscriptionState, active bool) error {
	if f.failures >= 0 && state.Failures != f.failures {
		f.failedAt = time.Now()
	}
	f.failures = state.Failures // those from before the first look are over
	if active {
		f.activeAt = time.Now()
	}
	failing := time.Since(f.failedAt) < failureShown && state.Failures > 0
	if active && !failing {
		return nil
	}
	if trouble := f.gateway.Trouble(); trouble != nil {
		return trouble
	}
	if !failing && time.Since(f.activeAt) < beginningTime {
		return nil
	}
	said := f.service.databases.ApplyError(f.db)
	switch {
	case said == "" && !failing:
		return errors.New("the new database's server does not read the slot yet")
	case f.definition:
		return model.Errorf(model.CodeConflict, "changes of the source cannot be applied: %s. Definitions at the source have changed since the copy, and those do not follow: "+
			"undo that there, or cancel this import and start another", said)
	default:
		return model.Errorf(model.CodeConflict, "changes of the source cannot be applied: %s. They are tried again; if the cause stays, cancel this import and start another", said)
	}
}

// compare looks from time to time whether the source still has what it had at the copy.
func (f *follower) compare(ctx context.Context) {
	if f.changed == nil && time.Since(f.compared) < followDefinitions {
		return
	}
	f.compared = time.Now()
	f.changed = f.source.CheckPublished(ctx)
	f.compareDefinitions(ctx)
}

// compareDefinitions says once that the source's definitions have changed.
func (f *follower) compareDefinitions(ctx context.Context) {
	if f.definition {
		return
	}
	differ, err := f.source.HasOtherDefinitions(ctx)
	if err != nil || !differ {
		return
	}
	f.definition = true
	f.account.Say(model.ImportWarning, "definitions at the source (or the files of a table, by TRUNCATE, CLUSTER or the like) have changed since the copy: "+
		"what was created, altered or dropped there does not follow")
}

// pauseOnFullDisk ends the worker while the disk is nearly full: it would fill it for all databases.
func (f *follower) pauseOnFullDisk(ctx context.Context) (full bool, err error) {
	host, err := core.MeasureHost(f.service.core.Config.DataDir)
	if err != nil {
		return false, err
	}
	least := int64(f.service.core.Config.Advice.DiskFree / 2 * float64(host.DiskTotal))
	switch {
	case host.DiskFree >= least && !f.paused:
		return false, nil
	case host.DiskFree >= least:
		f.paused = false
		return false, f.subscribe(ctx)
	case !f.paused:
		if err := f.service.databases.PauseSubscription(ctx, f.db, f.follow().Slot); err != nil {
			return true, err
		}
		f.paused = true
	}
	return true, model.Errorf(model.CodeConflict, "the disk is nearly full, so the source's changes wait in its slot: the operator must free disk space, and then it goes on by itself")
}
