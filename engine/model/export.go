package model

import "time"

// ExportStatus is the state of an export.
type ExportStatus string

// The states of an export; the last two are final.
const (
	ExportPending ExportStatus = "pending"
	ExportRunning ExportStatus = "running"
	ExportReady   ExportStatus = "ready"
	ExportFailed  ExportStatus = "failed"
)

// Export is a logical copy of one database, in pg_dump's custom format.
type Export struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Database     string `json:"database"`
	// DBName is the database beside the tenant's that it copies, "" for the tenant's.
	DBName   string       `json:"dbname,omitempty"`
	Status   ExportStatus `json:"status"`
	Filename string       `json:"filename"`
	// Blob holds the bytes of a ready export.
	Blob           string    `json:"blob"`
	SizeBytes      int64     `json:"size_bytes"`
	ChecksumSHA256 string    `json:"checksum_sha256"` // in hex
	Version        string    `json:"version"`         // of PostgreSQL
	Error          string    `json:"error"`
	Attempts       int       `json:"attempts"`
	NotBefore      time.Time `json:"not_before"` // earliest time of the next attempt
	CreatedAt      time.Time `json:"created_at"`
	// Requested means that somebody asked for it, or for the backup that it follows.
	Requested bool `json:"requested,omitempty"`
}
