package api

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// Recovery says whether, to when and how well a database could be brought back.
type Recovery struct {
	PITREnabled            bool                   `json:"pitr_enabled" doc:"Whether points in time can be restored: WAL is archived, and there is a backup to start from."`
	Status                 recovery.RecoveryState `json:"status"`
	EarliestRestorableTime *time.Time             `json:"earliest_restorable_time"`
	LatestRestorableTime   *time.Time             `json:"latest_restorable_time"`
	RPOSeconds             *float64               `json:"rpo_seconds" doc:"How much of the past would be missing if the server were lost now."`
	WALArchiving           WALArchiving           `json:"wal_archiving"`
	Schedule               Schedule               `json:"schedule"`
	Timeline               []RecoveryEvent        `json:"timeline" doc:"Newest first."`
	Operations             []Operation            `json:"operations" doc:"Newest first."`
}

// WALArchiving is how the WAL gets into the archive.
type WALArchiving struct {
	Enabled         bool               `json:"enabled"`
	Status          WALArchivingStatus `json:"status"`
	LastArchivedWAL *string            `json:"last_archived_wal"`
	LastArchivedLSN *string            `json:"last_archived_lsn"`
	LastArchivedAt  *time.Time         `json:"last_archived_at"`
	LastFailedAt    *time.Time         `json:"last_failed_at"`
	LastError       *string            `json:"last_error"`
	ArchivedCount   int                `json:"archived_count" doc:"Segments in the archive, from before restores too."`
	FailedCount     int                `json:"failed_count" doc:"Since the appliance was started; a restore does not reset it."`
	BacklogBytes    int64              `json:"backlog_bytes"`
	Gaps            []WALGap           `json:"gaps"`
}

// WALGap is WAL that is missing for good.
type WALGap struct {
	FromLSN  string    `json:"from_lsn"`
	ToLSN    string    `json:"to_lsn"`
	Timeline int       `json:"timeline"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

// Schedule is when backups are made, and how long they are kept.
type Schedule struct {
	EverySeconds  int64      `json:"every_seconds" doc:"0 for never."`
	NextRunAt     *time.Time `json:"next_run_at"`
	RetentionDays float64    `json:"retention_days" doc:"0 keeps them for ever."`
}

// RecoveryEvent is something on the line of time.
type RecoveryEvent struct {
	Type        RecoveryEventType `json:"type"`
	At          time.Time         `json:"at"`
	BackupID    *string           `json:"backup_id"`
	WALTimeline *int              `json:"wal_timeline" doc:"Of a restore or timeline_switch: the one the database continues on."`
	LSN         *string           `json:"lsn" doc:"Of a backup its end, of a gap its beginning, of a restore or timeline_switch where the WAL continues."`
}

func (h *handlers) recoveryGet(ctx context.Context, call *model.Call, in *DatabaseInput) (Recovery, error) {
	r, err := h.engine.Recovery.RecoveryGet(ctx, call, in.ID)
	return newRecovery(r), err
}

func newRecovery(r recovery.Recovery) Recovery {
	view := Recovery{
		PITREnabled: r.Archives && r.Window.Earliest != nil, Status: r.State,
		EarliestRestorableTime: utcOrAbsent(r.Window.Earliest), LatestRestorableTime: utcOrAbsent(r.Window.Latest),
		WALArchiving: newWALArchiving(r.Archives, r.Archiving),
		Schedule: Schedule{
			EverySeconds: int64(r.Interval.Seconds()), NextRunAt: utcOrAbsent(r.NextBackup), RetentionDays: r.Retention.Hours() / 24,
		},
		Timeline: []RecoveryEvent{}, Operations: []Operation{},
	}
	if r.RPO != nil {
		seconds := r.RPO.Seconds()
		view.RPOSeconds = &seconds
	}
	for _, event := range r.Timeline {
		view.Timeline = append(view.Timeline, RecoveryEvent{
			Type: RecoveryEventType(event.Type), At: utc(event.At), BackupID: orAbsent(event.Backup), WALTimeline: orAbsent(event.Timeline), LSN: orAbsent(event.LSN),
		})
	}
	for _, op := range r.Operations {
		view.Operations = append(view.Operations, NewOperation(op))
	}
	return view
}

func newWALArchiving(enabled bool, a recovery.Archiving) WALArchiving {
	view := WALArchiving{
		Enabled: enabled, Status: WALArchivingStatus(a.State), LastArchivedWAL: orAbsent(a.LastSegment),
		LastArchivedAt: utcOrAbsent(&a.At), LastFailedAt: utcOrAbsent(&a.LastFailed), LastError: orAbsent(a.LastError),
		ArchivedCount: a.Segments, FailedCount: a.Failures, BacklogBytes: a.Backlog, Gaps: []WALGap{},
	}
	if a.State == "" || a.State == "closed" {
		view.Status = "stopped"
	}
	if a.Durable > 0 {
		view.LastArchivedLSN = orAbsent(a.Durable.String())
	}
	for _, g := range a.Gaps {
		view.Gaps = append(view.Gaps, WALGap{FromLSN: g.From.String(), ToLSN: g.To.String(), Timeline: int(g.Timeline), At: utc(g.At), Reason: g.Reason})
	}
	return view
}

// RequestRestore is the point to which a database is restored.
type RequestRestore struct {
	TargetTime *time.Time   `json:"target_time" required:"false"`
	TargetLSN  *string      `json:"target_lsn" required:"false" pattern:"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$" patternDescription:"a position such as 0/1A2B3C4D" example:"0/1A2B3C4D"`
	Mode       *RestoreMode `json:"mode" required:"false" doc:"in_place when left out."`
	Name       *string      `json:"name" required:"false" maxLength:"63" doc:"Of the new database, with mode new."`
	DryRun     *bool        `json:"dry_run" required:"false" doc:"Whether to answer the plan only."`
}

// TransformSchema implements huma.SchemaTransformer.
func (RequestRestore) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "name", databaseName)
	describe(s, "target_lsn", rule{"not": noText(`^0+/0+$`)})
	describe(s, "", exactlyOne("target_time", "target_lsn"))
	describe(s, "", restoreName())
	return s
}

type requestRestoreInput struct {
	DatabaseInput
	Body RequestRestore
}

// RestorePlan is how a database would be brought to a point.
type RestorePlan struct {
	DryRun           bool       `json:"dry_run"`
	DatabaseID       string     `json:"database_id"`
	BackupID         string     `json:"backup_id"`
	TargetTime       *time.Time `json:"target_time" doc:"Of the last commit that will be there."`
	TargetLSN        string     `json:"target_lsn" doc:"Up to which WAL is replayed."`
	WALTimeline      int        `json:"wal_timeline"`
	WALBytes         int64      `json:"wal_bytes" doc:"To be replayed."`
	RestoreBytes     int64      `json:"restore_bytes" doc:"Of files to be restored."`
	NeededBytes      int64      `json:"needed_bytes" doc:"Room it takes beside the present data."`
	EstimatedSeconds *float64   `json:"estimated_seconds" doc:"Based on how long restores and verifications took on this machine; null without a comparable measurement."`
}

// RequestedRestore is the operation that was begun or, with dry_run, the plan.
type RequestedRestore struct {
	operation *Operation
	plan      *RestorePlan
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
		r.Schema(reflect.TypeFor[Operation](), true, "Operation"),
		r.Schema(reflect.TypeFor[RestorePlan](), true, "RestorePlan"),
	}}
}

func (h *handlers) recoveryRequest(ctx context.Context, call *model.Call, in *requestRestoreInput) (RequestedRestore, error) {
	if (in.Body.TargetTime == nil) == (in.Body.TargetLSN == nil) {
		return RequestedRestore{}, model.Invalid("target_time", "give exactly one of target_time and target_lsn")
	}
	intoNew, err := isNew(in.Body.Mode, in.Body.Name)
	if err != nil {
		return RequestedRestore{}, err
	}
	at := recovery.RestorePoint{LSN: text(in.Body.TargetLSN)}
	if in.Body.TargetTime != nil {
		at.Time = *in.Body.TargetTime
	}
	if in.Body.DryRun != nil && *in.Body.DryRun {
		var plan recovery.RestorePlan
		if intoNew {
			plan, err = h.engine.Recovery.RestorePlanNew(ctx, call, in.ID, at, text(in.Body.Name))
		} else {
			plan, err = h.engine.Recovery.RestorePlan(ctx, call, in.ID, at)
		}
		return RequestedRestore{plan: newRestorePlan(in.ID, plan)}, err
	}
	var op model.DatabaseOperation
	if intoNew {
		op, err = h.engine.Recovery.RecoveryRestoreNew(call, in.ID, at, text(in.Body.Name))
	} else {
		op, err = h.engine.Recovery.RecoveryRestore(call, in.ID, at)
	}
	view := NewOperation(op)
	return RequestedRestore{operation: &view}, err
}

func newRestorePlan(database string, p recovery.RestorePlan) *RestorePlan {
	var seconds *float64
	if p.Estimated != nil {
		estimated := p.Estimated.Seconds()
		seconds = &estimated
	}
	return &RestorePlan{
		DryRun: true, DatabaseID: database, BackupID: p.Backup.ID, TargetTime: utcOrAbsent(&p.At), TargetLSN: p.Target.End.String(),
		WALTimeline: int(p.Target.Timeline), WALBytes: p.WALBytes(), RestoreBytes: p.Backup.SizeBytes, NeededBytes: p.NeededBytes(),
		EstimatedSeconds: seconds,
	}
}
