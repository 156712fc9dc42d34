package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/offsite"
	"holdfast/server/api/wire"
)

func (h *handlers) offsiteGet(_ context.Context, call *model.Call, _ *nothingInput) (wire.Offsite, error) {
	call.Resource = organization(call)
	status, err := h.engine.Offsite.StatusFor(call.Organization)
	return newOffsite(status), err
}

func newOffsite(s offsite.Status) wire.Offsite {
	view := wire.Offsite{
		Status: wire.OffsiteStatus(s.State), Point: utcOrAbsent(s.Point), BacklogBytes: s.Backlog,
		CheckpointAt: utcOrAbsent(s.Checkpoint), Problem: orAbsent(s.Problem),
		Streams: []wire.OffsiteStream{}, Recovery: newOffsiteRecovery(s.Recovery),
	}
	for _, st := range s.Streams {
		view.Streams = append(view.Streams, wire.OffsiteStream{
			Stream: wire.OffsiteStreamName(st.Stream), DatabaseID: orAbsent(st.Database), Database: orAbsent(st.Name),
			Point: utc(st.Point), LagSeconds: st.Lag.Seconds(), BacklogBytes: st.Backlog,
		})
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
	if s.Restored != nil {
		if view.RestoreFailed = s.Restored.Error != ""; !view.RestoreFailed {
			view.RestoredAt = utcOrAbsent(&s.Restored.At)
		}
	}
	if s.Fenced != nil {
		view.TakenOverBy = orAbsent(s.Fenced.Machine)
	}
	return view
}

// newOffsiteDatabase describes the copy of a database: while its stream is unknown, it is as old as the whole copy.
func newOffsiteDatabase(s offsite.Status, database string) wire.OffsiteDatabase {
	whole := newOffsite(s)
	view := wire.OffsiteDatabase{Status: whole.Status, Point: whole.Point, LagSeconds: whole.LagSeconds, VerifiedAt: whole.VerifiedAt}
	if st, ok := s.Of(database); ok {
		lag := st.Lag.Seconds()
		view.Point, view.LagSeconds, view.BacklogBytes = utcOrAbsent(&st.Point), &lag, st.Backlog
	}
	return view
}

func newOffsiteRecovery(r *offsite.RecoveryReport) *wire.RecoveredAppliance {
	if r == nil {
		return nil
	}
	view := &wire.RecoveredAppliance{
		Machine: r.Machine, Until: utc(r.Until), StartedAt: utc(r.StartedAt), EndedAt: utcOrAbsent(r.EndedAt),
		Complete:  r.EndedAt != nil && len(r.Missing()) == 0,
		Databases: []wire.RecoveredDatabase{}, ObjectsDropped: r.ObjectsDropped, ObjectsDamaged: r.ObjectsDamaged,
	}
	for _, d := range r.Databases {
		if !d.Done { // it is what a rebuild has not brought back yet
			d.LastCommit = nil
		}
		view.Databases = append(view.Databases, wire.RecoveredDatabase{
			DatabaseID: d.ID, Database: d.Name, Done: d.Done, Left: d.Left, InTrash: d.Trash, LastCommitAt: utcOrAbsent(d.LastCommit), Problem: orAbsent(d.Error),
		})
	}
	return view
}
