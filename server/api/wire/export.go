package wire

import "time"

// CreateExport is a request to export a database now.
type CreateExport struct {
	DBName *string `json:"dbname,omitzero" required:"false" minLength:"1" maxLength:"63" doc:"A database beside the main one, of those that GET /databases/{id}/databases lists; the main one when left out." example:"tests"`
}

// Export is a logical copy of a database, for pg_restore.
type Export struct {
	ID              string       `json:"id"`
	DBName          *string      `json:"dbname" doc:"The database beside the main one that it is of; null for the main one."`
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
	Newer           *NewerExport `json:"newer" doc:"What is to replace this export: it follows a newer backup or request."`
}

// NewerExport is the progress of a newer backup's export.
type NewerExport struct {
	ID     string       `json:"id"`
	Status ExportStatus `json:"status"`
	Error  *string      `json:"error"`
}
