package model

import "time"

// ExportStatus is how far an export is.
type ExportStatus string

// The states of an export; the last two are final.
const (
	ExportPending ExportStatus = "pending"
	ExportRunning ExportStatus = "running"
	ExportReady   ExportStatus = "ready"
	ExportFailed  ExportStatus = "failed"
)

// Export is a logical copy of one database, in the custom format of pg_dump.
type Export struct {
	ID           string       `json:"id"`
	Organization string       `json:"organization"`
	Database     string       `json:"database"`
	Status       ExportStatus `json:"status"`
	Filename     string       `json:"filename"`
	// Blob holds the bytes of a ready export.
	Blob           string    `json:"blob"`
	SizeBytes      int64     `json:"size_bytes"`
	ChecksumSHA256 string    `json:"checksum_sha256"` // in hex
	Version        string    `json:"version"`         // of the server
	Error          string    `json:"error"`
	Attempts       int       `json:"attempts"`
	NotBefore      time.Time `json:"not_before"` // when it is tried next
	CreatedAt      time.Time `json:"created_at"`
}
