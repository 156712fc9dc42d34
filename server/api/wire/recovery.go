package wire

import "time"

// Recovery says whether, and to what point in time, a database can be
// recovered.
type Recovery struct {
	PITREnabled            bool            `json:"pitr_enabled" doc:"Whether points in time can be restored: WAL is archived, and there is a backup to start from."`
	Status                 RecoveryStatus  `json:"status"`
	EarliestRestorableTime *time.Time      `json:"earliest_restorable_time"`
	LatestRestorableTime   *time.Time      `json:"latest_restorable_time"`
	RPOSeconds             *float64        `json:"rpo_seconds" doc:"How much of the past would be missing if the server were lost now."`
	WALArchiving           WALArchiving    `json:"wal_archiving"`
	Schedule               Schedule        `json:"schedule"`
	Offsite                OffsiteDatabase `json:"offsite"`
	Timeline               []RecoveryEvent `json:"timeline" doc:"Newest first."`
	Operations             []Operation     `json:"operations" doc:"Newest first."`
}

// WALArchiving is the state of WAL archiving.
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

// WALGap is a range of WAL that is permanently missing.
type WALGap struct {
	FromLSN  string    `json:"from_lsn"`
	ToLSN    string    `json:"to_lsn"`
	Timeline int       `json:"timeline"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
}

// Schedule says how often backups are made and how long they are kept.
type Schedule struct {
	EverySeconds  int64      `json:"every_seconds" doc:"0 for never."`
	NextRunAt     *time.Time `json:"next_run_at"`
	RetentionDays float64    `json:"retention_days" doc:"0 keeps them for ever."`
}

// RecoveryEvent is an event on the recovery timeline.
type RecoveryEvent struct {
	Type        RecoveryEventType `json:"type"`
	At          time.Time         `json:"at"`
	BackupID    *string           `json:"backup_id"`
	WALTimeline *int              `json:"wal_timeline" doc:"Of a restore or timeline_switch: the one the database continues on."`
	LSN         *string           `json:"lsn" doc:"Of a backup its end, of a gap its beginning, of a restore or timeline_switch where the WAL continues."`
}

// RequestRestore is the point to restore a database to.
type RequestRestore struct {
	TargetTime *time.Time   `json:"target_time,omitzero" required:"false"`
	TargetLSN  *string      `json:"target_lsn,omitzero" required:"false" pattern:"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$" patternDescription:"a position such as 0/1A2B3C4D" example:"0/1A2B3C4D"`
	Mode       *RestoreMode `json:"mode,omitzero" required:"false" doc:"in_place when left out."`
	Name       *string      `json:"name,omitzero" required:"false" maxLength:"63" doc:"Of the new database, with mode new."`
	DryRun     *bool        `json:"dry_run,omitzero" required:"false" doc:"Whether to answer the plan only."`
}

// RestorePlan describes a restore before it is made.
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
