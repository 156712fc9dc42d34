package wire

import "time"

// Export is a logical copy of a database, for pg_restore.
type Export struct {
	ID              string       `json:"id"`
	Status          ExportStatus `json:"status"`
	Format          ExportFormat `json:"format" doc:"Of pg_dump."`
	Filename        *string      `json:"filename"`
	SizeBytes       *int64       `json:"size_bytes"`
	ChecksumSHA256  *string      `json:"checksum_sha256"`
	PostgresVersion *string      `json:"postgres_version"`
	CreatedAt       time.Time    `json:"created_at"`
	DownloadURL     *string      `json:"download_url" doc:"Works without a key until expires_at; answers ranges."`
	ExpiresAt       *time.Time   `json:"expires_at" doc:"Of the download URL."`
	Error           *string      `json:"error"`
	Newer           *NewerExport `json:"newer" doc:"What is to replace this export: it follows a newer backup."`
}

// NewerExport is the progress of a newer backup's export.
type NewerExport struct {
	ID     string       `json:"id"`
	Status ExportStatus `json:"status"`
	Error  *string      `json:"error"`
}
