package client

import (
	"context"
	"time"
)

// ExportReady is the status of an export that can be downloaded.
const ExportReady = "ready"

// Export is a logical copy of a database, for pg_restore.
type Export struct {
	ID              string     `json:"id"`
	Status          string     `json:"status"`
	Format          string     `json:"format"`
	Filename        *string    `json:"filename"`
	SizeBytes       *int64     `json:"size_bytes"`
	ChecksumSHA256  *string    `json:"checksum_sha256"` // hexadecimal
	PostgresVersion *string    `json:"postgres_version"`
	CreatedAt       time.Time  `json:"created_at"`
	DownloadURL     *string    `json:"download_url"` // works without a key
	ExpiresAt       *time.Time `json:"expires_at"`   // of the download URL
	Error           *string    `json:"error"`
}

// GetExport returns the newest export of a database.
func (c *Client) GetExport(ctx context.Context, database string) (Export, error) {
	return one[Export](ctx, c, "GET", path("databases", database, "export"), nil)
}

// AwaitExport waits for an export under way to be ready or to have failed.
func (c *Client) AwaitExport(ctx context.Context, database string, seen func(Export)) (Export, error) {
	return await(ctx,
		func(ctx context.Context) (Export, error) { return c.GetExport(ctx, database) },
		func(x Export) bool { return x.Status == ExportReady || x.Status == StatusFailed }, seen)
}
