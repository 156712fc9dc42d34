package client

import (
	"context"
	"iter"
	"time"
)

// The states of backups and operations.
const (
	StatusPending   = "pending"
	StatusRunning   = "running"
	StatusCompleted = "completed"
	StatusFailed    = "failed"
)

// Backup is a backup's record.
type Backup struct {
	ID              string       `json:"id"`
	DatabaseID      string       `json:"database_id"`
	Type            string       `json:"type"`
	Method          string       `json:"method"`
	Status          string       `json:"status"`
	Pinned          bool         `json:"pinned"`
	PinnedAt        *time.Time   `json:"pinned_at"`
	PinReason       *string      `json:"pin_reason"`
	SizeBytes       *int64       `json:"size_bytes"`   // of the database's files
	StoredBytes     *int64       `json:"stored_bytes"` // what the backup takes
	Compression     string       `json:"compression"`
	ManifestBLAKE3  *string      `json:"manifest_blake3"`
	PostgresVersion *string      `json:"postgres_version"`
	Timeline        *int         `json:"timeline"`
	StartLSN        *string      `json:"start_lsn"`
	StopLSN         *string      `json:"stop_lsn"`
	StartedAt       time.Time    `json:"started_at"`
	CompletedAt     *time.Time   `json:"completed_at"`
	ExpiresAt       *time.Time   `json:"expires_at"`
	ProgressPercent int          `json:"progress_percent"`
	Error           *string      `json:"error"`
	Verification    Verification `json:"verification"`
}

// Verification is whether a backup was proven to restore.
type Verification struct {
	Status     string     `json:"status"`
	VerifiedAt *time.Time `json:"verified_at"`
	Detail     *string    `json:"detail"`
}

// Deleted says that something is gone.
type Deleted struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// PinBackup keeps a backup from expiring, or no longer.
type PinBackup struct {
	Pinned bool   `json:"pinned"`
	Reason string `json:"reason,omitempty"`
}

// Where a restore goes.
const (
	RestoreInPlace = "in_place"
	RestoreNew     = "new"
)

// RestoreBackup is where a backup is restored to; Name only goes with
// RestoreNew.
type RestoreBackup struct {
	Mode string `json:"mode,omitempty"`
	Name string `json:"name,omitempty"`
}

// ListBackups returns a page of a database's backups.
func (c *Client) ListBackups(ctx context.Context, database string, o ListOptions) (Page[Backup], error) {
	return list[Backup](ctx, c, path("databases", database, "backups"), o.query())
}

// Backups walks all backups of a database.
func (c *Client) Backups(ctx context.Context, database string) iter.Seq2[Backup, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[Backup], error) {
		return c.ListBackups(ctx, database, o)
	})
}

// CreateBackup begins a backup.
func (c *Client) CreateBackup(ctx context.Context, database string) (Backup, error) {
	return one[Backup](ctx, c, "POST", path("databases", database, "backups"), nil)
}

// GetBackup returns a backup's record.
func (c *Client) GetBackup(ctx context.Context, database, id string) (Backup, error) {
	return one[Backup](ctx, c, "GET", path("databases", database, "backups", id), nil)
}

// AwaitBackup waits for a backup to be completed or to have failed, and tells
// seen how far it is.
func (c *Client) AwaitBackup(ctx context.Context, database, id string, seen func(Backup)) (Backup, error) {
	return await(ctx,
		func(ctx context.Context) (Backup, error) { return c.GetBackup(ctx, database, id) },
		func(b Backup) bool { return b.Status == StatusCompleted || b.Status == StatusFailed }, seen)
}

// DeleteBackup deletes a backup.
func (c *Client) DeleteBackup(ctx context.Context, database, id string) (Deleted, error) {
	return one[Deleted](ctx, c, "DELETE", path("databases", database, "backups", id), nil)
}

// RestoreBackup begins to restore a backup.
func (c *Client) RestoreBackup(ctx context.Context, database, id string, in RestoreBackup) (Operation, error) {
	return one[Operation](ctx, c, "POST", path("databases", database, "backups", id, "restore"), in)
}

// PinBackup pins or unpins a backup.
func (c *Client) PinBackup(ctx context.Context, database, id string, in PinBackup) (Backup, error) {
	return one[Backup](ctx, c, "POST", path("databases", database, "backups", id, "pin"), in)
}
