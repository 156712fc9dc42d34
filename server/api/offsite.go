package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/server/api/wire"
)

func (h *handlers) offsiteGet(_ context.Context, call *model.Call, _ *nothingInput) (wire.Offsite, error) {
	call.Resource = organization(call)
	return newOffsite(h.engine.Offsite.Status()), nil
}

func newOffsite(s offsite.Status) wire.Offsite {
	view := wire.Offsite{
		Status: wire.OffsiteStatus(s.State), Point: utcOrAbsent(s.Point), BacklogBytes: s.Backlog,
		CheckpointAt: utcOrAbsent(s.Checkpoint), Problem: orAbsent(s.Problem),
	}
	view.Objects = wire.OffsiteObjects{Away: s.AwayObjects, AwayBytes: s.AwayBytes, LocalBytes: s.LocalBytes}
	if s.LocalLimit > 0 {
		view.Objects.LocalLimitBytes = &s.LocalLimit
	}
	if s.Point != nil {
		lag := s.Lag.Seconds()
		view.LagSeconds = &lag
	}
	if s.Verified != nil {
		view.VerifiedAt, view.DamagedObjects = utcOrAbsent(&s.Verified.At), len(s.Verified.Damage)
	}
	if s.Restored != nil && s.Restored.Error == "" {
		view.RestoredAt = utcOrAbsent(&s.Restored.At)
	}
	if s.Fenced != nil {
		view.TakenOverBy = orAbsent(s.Fenced.Machine)
	}
	return view
}
