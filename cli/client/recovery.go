package client

import (
	"context"
	"errors"
	"time"
)

// Operation is something long that is done to a database.
type Operation struct {
	ID              string     `json:"id"`
	DatabaseID      string     `json:"database_id"`
	Type            string     `json:"type"`
	Status          string     `json:"status"`
	Phase           *string    `json:"phase"`
	ProgressPercent int        `json:"progress_percent"`
	TargetTime      *time.Time `json:"target_time"`
	BackupID        *string    `json:"backup_id"`
	Error           *string    `json:"error"`
	StartedAt       time.Time  `json:"started_at"`
	CompletedAt     *time.Time `json:"completed_at"`
}

// Recovery is to which moments a database can be brought back, and how that
// is going.
type Recovery struct {
	PITREnabled            bool            `json:"pitr_enabled"`
	Status                 string          `json:"status"`
	EarliestRestorableTime *time.Time      `json:"earliest_restorable_time"`
	LatestRestorableTime   *time.Time      `json:"latest_restorable_time"`
	RPOSeconds             *float64        `json:"rpo_seconds"`
	WALArchiving           WALArchiving    `json:"wal_archiving"`
	Schedule               BackupSchedule  `json:"schedule"`
	Timeline               []RecoveryEvent `json:"timeline"`
	Operations             []Operation     `json:"operations"`
}

// WALArchiving is how the write-ahead log is being kept.
type WALArchiving struct {
	Enabled         bool       `json:"enabled"`
	Status          string     `json:"status"`
	LastArchivedWAL *string    `json:"last_archived_wal"`
	LastArchivedAt  *time.Time `json:"last_archived_at"`
	LastFailedAt    *time.Time `json:"last_failed_at"`
	LastError       *string    `json:"last_error"`
	ArchivedCount   int64      `json:"archived_count"`
	FailedCount     int64      `json:"failed_count"`
	BacklogBytes    int64      `json:"backlog_bytes"`
	Gaps            []any      `json:"gaps"`
}

// BackupSchedule is when backups are made by themselves.
type BackupSchedule struct {
	EverySeconds  int64      `json:"every_seconds"`
	NextRunAt     *time.Time `json:"next_run_at"`
	RetentionDays float64    `json:"retention_days"`
}

// RecoveryEvent is a point on the recovery timeline.
type RecoveryEvent struct {
	Type        string    `json:"type"`
	At          time.Time `json:"at"`
	BackupID    *string   `json:"backup_id"`
	WALTimeline *int      `json:"wal_timeline"`
	LSN         *string   `json:"lsn"`
}

// RequestRestore is the point to which a database is restored: exactly one of
// TargetTime and TargetLSN.
type RequestRestore struct {
	TargetTime *time.Time `json:"target_time,omitempty"`
	TargetLSN  string     `json:"target_lsn,omitempty"`
	Mode       string     `json:"mode,omitempty"`
	Name       string     `json:"name,omitempty"`
}

// GetRecovery returns the state of a database's recovery.
func (c *Client) GetRecovery(ctx context.Context, database string) (Recovery, error) {
	return one[Recovery](ctx, c, "GET", path("databases", database, "recovery"), nil)
}

// RequestRestore begins to restore a database to a point in time.
func (c *Client) RequestRestore(ctx context.Context, database string, in RequestRestore) (Operation, error) {
	return one[Operation](ctx, c, "POST", path("databases", database, "recovery", "restore-request"), in)
}

// PlanRestore returns what RequestRestore would do, and changes nothing.
func (c *Client) PlanRestore(ctx context.Context, database string, in RequestRestore) (map[string]any, error) {
	return one[map[string]any](ctx, c, "POST", path("databases", database, "recovery", "restore-request"), struct {
		RequestRestore
		DryRun bool `json:"dry_run"`
	}{in, true})
}

// UndoRestore begins to bring back the data that the last restore replaced.
func (c *Client) UndoRestore(ctx context.Context, database string) (Operation, error) {
	return one[Operation](ctx, c, "POST", path("databases", database, "recovery", "undo"), nil)
}

// ErrOutcomeUnknown says that an operation has ended, and that this version
// of the appliance does not say how.
var ErrOutcomeUnknown = errors.New("the operation has ended; this version of the appliance does not say how")

// AwaitOperation waits for an operation on a database to end, tells seen how
// far it is, and returns how it ended.
func (c *Client) AwaitOperation(ctx context.Context, op Operation, seen func(Operation)) (Operation, error) {
	_, err := await(ctx,
		func(ctx context.Context) (Database, error) { return c.GetDatabase(ctx, op.DatabaseID) },
		func(db Database) bool { return db.Operation == nil || db.Operation.ID != op.ID },
		func(db Database) {
			if seen != nil && db.Operation != nil && db.Operation.ID == op.ID {
				seen(*db.Operation)
			}
		})
	if err != nil {
		return op, err
	}
	recovery, err := c.GetRecovery(ctx, op.DatabaseID)
	if CodeOf(err) == CodeForbidden {
		return op, ErrOutcomeUnknown
	}
	for _, ended := range recovery.Operations {
		if ended.ID == op.ID {
			return ended, err
		}
	}
	return op, errors.Join(err, ErrOutcomeUnknown)
}
