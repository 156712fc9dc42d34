package api

import (
	"context"
	"time"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type upgradeInput struct {
	DatabaseInput
	Body wire.UpgradeDatabase
}

func (h *handlers) databaseUpgrade(ctx context.Context, call *model.Call, in *upgradeInput) (wire.Operation, error) {
	op, err := h.engine.Recovery.UpgradeDatabase(ctx, call, in.ID, in.Body.Version, in.Body.DryRun != nil && *in.Body.DryRun)
	return NewOperation(op), err
}

func newUpgrade(u model.Upgrade) *wire.Upgrade {
	view := &wire.Upgrade{
		FromVersion: u.From, Version: u.To, EstimatedDownSeconds: secondsOrAbsent(u.Estimated), StoppedAt: utcOrAbsent(u.StoppedAt),
		DownSeconds: secondsOrAbsent(u.Down), ExtensionUpdates: []wire.ExtensionUpdate{}, Notes: append([]string{}, u.Notes...),
	}
	if u.SizeBytes > 0 {
		view.NeededBytes = &u.SizeBytes
	}
	for _, x := range u.Updates {
		view.ExtensionUpdates = append(view.ExtensionUpdates, wire.ExtensionUpdate{Name: x.Name, InstalledVersion: x.From, Version: x.To})
	}
	return view
}

// secondsOrAbsent returns nil for a duration that is not known.
func secondsOrAbsent(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	seconds := d.Seconds()
	return &seconds
}
