package wire

import "time"

// Backup is a backup's record.
type Backup struct {
	ID              string       `json:"id"`
	DatabaseID      string       `json:"database_id"`
	Type            BackupType   `json:"type"`
	Method          BackupMethod `json:"method"`
	Status          BackupStatus `json:"status"`
	Pinned          bool         `json:"pinned"`
	PinnedAt        *time.Time   `json:"pinned_at"`
	PinReason       *string      `json:"pin_reason"`
	SizeBytes       *int64       `json:"size_bytes" doc:"Of the database's files; null until completed."`
	StoredBytes     *int64       `json:"stored_bytes" doc:"What the backup added to those before it, compressed; null until completed."`
	Compression     string       `json:"compression"`
	ManifestBLAKE3  *string      `json:"manifest_blake3"`
	PostgresVersion *string      `json:"postgres_version"`
	Timeline        *int         `json:"timeline"`
	StartLSN        *string      `json:"start_lsn"`
	StopLSN         *string      `json:"stop_lsn"`
	StartedAt       time.Time    `json:"started_at"`
	CompletedAt     *time.Time   `json:"completed_at"`
	ExpiresAt       *time.Time   `json:"expires_at"`
	ProgressPercent int          `json:"progress_percent" minimum:"0" maximum:"100"`
	Error           *string      `json:"error"`
	Verification    Verification `json:"verification"`
}

// Verification is the result of the trial restore of a backup.
type Verification struct {
	Status     VerificationStatus `json:"status"`
	VerifiedAt *time.Time         `json:"verified_at"`
	Detail     *string            `json:"detail"`
}

// DeletedBackup confirms that a backup was deleted.
type DeletedBackup struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// PinBackup pins a backup, so that it does not expire, or unpins it.
type PinBackup struct {
	Pinned *bool   `json:"pinned,omitzero" required:"false" doc:"true when left out."`
	Reason *string `json:"reason,omitzero" required:"false" maxLength:"500"`
}

// RestoreBackup is where to restore a backup.
type RestoreBackup struct {
	Mode *RestoreMode `json:"mode,omitzero" required:"false" doc:"in_place when left out."`
	Name *string      `json:"name,omitzero" required:"false" maxLength:"63" doc:"Of the new database, with mode new."`
}
