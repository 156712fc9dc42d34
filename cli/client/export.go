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
	// Newer is what is to replace this export: it follows a newer backup.
	Newer *NewerExport `json:"newer"`
}

// NewerExport is how far the export of a newer backup is.
type NewerExport struct {
	ID     string  `json:"id"`
	Status string  `json:"status"`
	Error  *string `json:"error"`
}

// newest is how far the export of the newest backup is.
func (x Export) newest() NewerExport {
	if x.Newer != nil {
		return *x.Newer
	}
	return NewerExport{x.ID, x.Status, x.Error}
}

// GetExport returns the newest export of a database that is ready, else how
// far the newest is.
func (c *Client) GetExport(ctx context.Context, database string) (Export, error) {
	return one[Export](ctx, c, "GET", path("databases", database, "export"), nil)
}

// AwaitExport waits for the export that follows the newest backup to be ready
// or to have failed, and not for those of backups that are completed meanwhile.
func (c *Client) AwaitExport(ctx context.Context, database string, seen func(Export)) (Export, error) {
	wanted := ""
	return await(ctx,
		func(ctx context.Context) (Export, error) { return c.GetExport(ctx, database) },
		func(x Export) bool {
			newest := x.newest()
			if wanted == "" {
				wanted = newest.ID
			}
			return x.ID == wanted && x.Status == ExportReady || newest.Status == ExportReady || newest.Status == StatusFailed
		}, seen)
}
