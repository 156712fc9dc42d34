package client

import (
	"context"
	"net/http"
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
	TargetTime      *time.Time `json:"target_time"` // asked for
	TargetLSN       *string    `json:"target_lsn"`  // asked for
	BackupID        *string    `json:"backup_id"`
	NewDatabaseID   *string    `json:"new_database_id"` // with RestoreNew
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
	LastArchivedLSN *string    `json:"last_archived_lsn"`
	LastArchivedAt  *time.Time `json:"last_archived_at"`
	LastFailedAt    *time.Time `json:"last_failed_at"`
	LastError       *string    `json:"last_error"`
	ArchivedCount   int        `json:"archived_count"`
	FailedCount     int        `json:"failed_count"`
	BacklogBytes    int64      `json:"backlog_bytes"`
	Gaps            []WALGap   `json:"gaps"`
}

// WALGap is a part of the write-ahead log that is missing for good.
type WALGap struct {
	FromLSN  string    `json:"from_lsn"`
	ToLSN    string    `json:"to_lsn"`
	Timeline int       `json:"timeline"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
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

// RestorePlan is how a database would be brought to a point.
type RestorePlan struct {
	DryRun           bool       `json:"dry_run"`
	DatabaseID       string     `json:"database_id"`
	BackupID         string     `json:"backup_id"`
	TargetTime       *time.Time `json:"target_time"` // of the last commit that will be there
	TargetLSN        string     `json:"target_lsn"`
	WALTimeline      int        `json:"wal_timeline"`
	WALBytes         int64      `json:"wal_bytes"`         // to be replayed
	RestoreBytes     int64      `json:"restore_bytes"`     // of files to be restored
	NeededBytes      int64      `json:"needed_bytes"`      // beside the present data
	EstimatedSeconds *float64   `json:"estimated_seconds"` // nil while nothing was measured on that machine
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
func (c *Client) PlanRestore(ctx context.Context, database string, in RequestRestore) (RestorePlan, error) {
	return one[RestorePlan](ctx, c, "POST", path("databases", database, "recovery", "restore-request"), struct {
		RequestRestore
		DryRun bool `json:"dry_run"`
	}{in, true})
}

// UndoRestore begins to bring back the data that the last restore replaced.
func (c *Client) UndoRestore(ctx context.Context, database string) (Operation, error) {
	return one[Operation](ctx, c, "POST", path("databases", database, "recovery", "undo"), nil)
}

// AwaitOperation waits for an operation on a database to end, tells seen how
// far it is, and returns how it ended. CodeNotFound says that nothing is known
// of it: its database was deleted.
func (c *Client) AwaitOperation(ctx context.Context, op Operation, seen func(Operation)) (Operation, error) {
	return await(ctx,
		func(ctx context.Context) (Operation, error) { return c.operation(ctx, op) },
		func(op Operation) bool { return op.Status == StatusCompleted || op.Status == StatusFailed }, seen)
}

// operation finds an operation among those of its database.
func (c *Client) operation(ctx context.Context, op Operation) (Operation, error) {
	recovery, err := c.GetRecovery(ctx, op.DatabaseID)
	if err != nil {
		return op, err
	}
	for _, known := range recovery.Operations {
		if known.ID == op.ID {
			return known, nil
		}
	}
	return op, &Error{Status: http.StatusNotFound, Code: CodeNotFound, Message: "nothing is known of the operation " + op.ID}
}
