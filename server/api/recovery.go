package api

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/server/api/wire"
)

func (h *handlers) recoveryGet(ctx context.Context, call *model.Call, in *DatabaseInput) (wire.Recovery, error) {
	r, err := h.engine.Recovery.RecoveryGet(ctx, call, in.ID)
	view := newRecovery(r)
	view.Offsite = newOffsiteDatabase(h.engine.Offsite.Status(), in.ID)
	return view, err
}

func newRecovery(r recovery.Recovery) wire.Recovery {
	view := wire.Recovery{
		PITREnabled: r.Archives && r.Window.Earliest != nil, Status: wire.RecoveryStatus(r.State),
		EarliestRestorableTime: utcOrAbsent(r.Window.Earliest), LatestRestorableTime: utcOrAbsent(r.Window.Latest),
		WALArchiving: newWALArchiving(r.Archives, r.Archiving),
		Schedule: wire.Schedule{
			EverySeconds: int64(r.Interval.Seconds()), NextRunAt: utcOrAbsent(r.NextBackup), RetentionDays: r.Retention.Hours() / 24,
		},
		Timeline: []wire.RecoveryEvent{}, Operations: []wire.Operation{},
	}
	if r.RPO != nil {
		seconds := r.RPO.Seconds()
		view.RPOSeconds = &seconds
	}
	for _, event := range r.Timeline {
		view.Timeline = append(view.Timeline, wire.RecoveryEvent{
			Type: wire.RecoveryEventType(event.Type), At: utc(event.At), BackupID: orAbsent(event.Backup), WALTimeline: orAbsent(event.Timeline), LSN: orAbsent(event.LSN),
		})
	}
	for _, op := range r.Operations {
		view.Operations = append(view.Operations, NewOperation(op))
	}
	return view
}

func newWALArchiving(enabled bool, a recovery.Archiving) wire.WALArchiving {
	view := wire.WALArchiving{
		Enabled: enabled, Status: wire.WALArchivingStatus(a.State), LastArchivedWAL: orAbsent(a.LastSegment),
		LastArchivedAt: utcOrAbsent(&a.At), LastFailedAt: utcOrAbsent(&a.LastFailed), LastError: orAbsent(a.LastError),
		ArchivedCount: a.Segments, FailedCount: a.Failures, BacklogBytes: a.Backlog, Gaps: []wire.WALGap{},
	}
	if a.State == "" || a.State == "closed" {
		view.Status = wire.WALStopped
	}
	if a.Durable > 0 {
		view.LastArchivedLSN = orAbsent(a.Durable.String())
	}
	for _, g := range a.Gaps {
		view.Gaps = append(view.Gaps, wire.WALGap{FromLSN: g.From.String(), ToLSN: g.To.String(), Timeline: int(g.Timeline), At: utc(g.At), Reason: g.Reason})
	}
	return view
}

type requestRestoreInput struct {
	DatabaseInput
	Body wire.RequestRestore
}

// RequestedRestore is the started operation or, with dry_run, the plan.
type RequestedRestore struct {
	operation *wire.Operation
	plan      *wire.RestorePlan
}

// MarshalJSON implements json.Marshaler.
func (r RequestedRestore) MarshalJSON() ([]byte, error) {
	if r.plan != nil {
		return json.Marshal(r.plan)
	}
	return json.Marshal(r.operation)
}

// Schema implements huma.SchemaProvider.
func (RequestedRestore) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		r.Schema(reflect.TypeFor[wire.Operation](), true, "Operation"),
		r.Schema(reflect.TypeFor[wire.RestorePlan](), true, "RestorePlan"),
	}}
}

func (h *handlers) recoveryRequest(ctx context.Context, call *model.Call, in *requestRestoreInput) (RequestedRestore, error) {
	if (in.Body.TargetTime == nil) == (in.Body.TargetLSN == nil) {
		return RequestedRestore{}, model.Invalid("target_time", "give exactly one of target_time and target_lsn")
	}
	into, err := restoreInto(in.Body.Mode, in.Body.Name)
	if err != nil {
		return RequestedRestore{}, err
	}
	at := recovery.RestorePoint{LSN: text(in.Body.TargetLSN)}
	if in.Body.TargetTime != nil {
		at.Time = *in.Body.TargetTime
	}
	if in.Body.DryRun != nil && *in.Body.DryRun {
		plan, err := h.engine.Recovery.RestorePlan(ctx, call, in.ID, at, into)
		return RequestedRestore{plan: newRestorePlan(in.ID, plan)}, err
	}
	op, err := h.engine.Recovery.RecoveryRestore(call, in.ID, at, into)
	view := NewOperation(op)
	return RequestedRestore{operation: &view}, err
}

func newRestorePlan(database string, p recovery.RestorePlan) *wire.RestorePlan {
	var seconds *float64
	if p.Estimated != nil {
		estimated := p.Estimated.Seconds()
		seconds = &estimated
	}
	return &wire.RestorePlan{
		DryRun: true, DatabaseID: database, BackupID: p.Backup.ID, TargetTime: utcOrAbsent(&p.At), TargetLSN: p.Target.End.String(),
		WALTimeline: int(p.Target.Timeline), WALBytes: p.WALBytes(), RestoreBytes: p.Backup.SizeBytes, NeededBytes: p.NeededBytes(),
		EstimatedSeconds: seconds,
	}
}
