package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// BackupOptions select backups; an empty field selects all. Backups have no
// project and no name.
type BackupOptions struct {
	ListOptions
	Filter
	Type   wire.BackupType
	Status wire.BackupStatus
}

// ListBackups returns a page of a database's backups.
func (c *Client) ListBackups(ctx context.Context, database string, o BackupOptions) (Page[wire.Backup], error) {
	query := setTexts(o.add(o.query()), map[string]string{"type": string(o.Type), "status": string(o.Status)})
	return list[wire.Backup](ctx, c, path("databases", database, "backups"), query)
}

// Backups iterates over the backups of a database that o selects.
func (c *Client) Backups(ctx context.Context, database string, o BackupOptions) iter.Seq2[wire.Backup, error] {
	return all(ctx, o, func(o *BackupOptions) *ListOptions { return &o.ListOptions },
		func(ctx context.Context, o BackupOptions) (Page[wire.Backup], error) {
			return c.ListBackups(ctx, database, o)
		})
}

// CreateBackup starts a backup.
func (c *Client) CreateBackup(ctx context.Context, database string) (wire.Backup, error) {
	return one[wire.Backup](ctx, c, "POST", path("databases", database, "backups"), nil)
}

// GetBackup returns a backup's record.
func (c *Client) GetBackup(ctx context.Context, database, id string) (wire.Backup, error) {
	return one[wire.Backup](ctx, c, "GET", path("databases", database, "backups", id), nil)
}

// AwaitBackup waits until a backup completes or fails, and returns its record. It
// follows the operation, which needs the scope database:read, and passes each state to
// seen, which may be nil.
func (c *Client) AwaitBackup(ctx context.Context, database, id string, seen func(wire.Operation)) (wire.Backup, error) {
	return awaitRecord(ctx, c,
		func(ctx context.Context) (wire.Backup, error) { return c.GetBackup(ctx, database, id) },
		func(b wire.Backup) bool { return b.Status == wire.BackupCompleted || b.Status == wire.BackupFailed },
		func(wire.Backup) OperationOptions {
			return OperationOptions{DatabaseID: database, Type: wire.OperationBackup}
		},
		func(op wire.Operation) bool { return op.BackupID != nil && *op.BackupID == id }, seen)
}

// DeleteBackup deletes a backup.
func (c *Client) DeleteBackup(ctx context.Context, database, id string) (wire.DeletedBackup, error) {
	return one[wire.DeletedBackup](ctx, c, "DELETE", path("databases", database, "backups", id), nil)
}

// RestoreBackup starts restoring a backup.
func (c *Client) RestoreBackup(ctx context.Context, database, id string, in wire.RestoreBackup) (wire.Operation, error) {
	return one[wire.Operation](ctx, c, "POST", path("databases", database, "backups", id, "restore"), in)
}

// PinBackup pins or unpins a backup.
func (c *Client) PinBackup(ctx context.Context, database, id string, in wire.PinBackup) (wire.Backup, error) {
	return one[wire.Backup](ctx, c, "POST", path("databases", database, "backups", id, "pin"), in)
}
