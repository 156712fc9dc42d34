package model

import "time"

// BackupType says why a backup was made.
type BackupType string

// The kinds of backup.
const (
	BackupManual    BackupType = "manual"
	BackupScheduled BackupType = "scheduled"
)

// BackupStatus is how far a backup is.
type BackupStatus string

// The states of a backup; the last two are final.
const (
	BackupPending   BackupStatus = "pending"
	BackupRunning   BackupStatus = "running"
	BackupCompleted BackupStatus = "completed"
	BackupFailed    BackupStatus = "failed"
)

// Backup is a physical backup of one database.
type Backup struct {
	ID           string       `json:"id"`
	Organization string       `json:"organization"`
	Database     string       `json:"database"`
	Type         BackupType   `json:"type"`
	Status       BackupStatus `json:"status"`
	Progress     int          `json:"progress"` // percent
	Error        string       `json:"error"`
	Version      string       `json:"version"`    // of the server
	Generation   int          `json:"generation"` // of the data directory it was made of
	Timeline     int          `json:"timeline"`
	StartLSN     string       `json:"start_lsn"`
	StopLSN      string       `json:"stop_lsn"`
	SizeBytes    int64        `json:"size_bytes"`
	StoredBytes  int64        `json:"stored_bytes"` // what this backup added to those before
	// ManifestBLAKE3 is the hash of the backup's manifest, in hex.
	ManifestBLAKE3 string     `json:"manifest_blake3"`
	StartedAt      time.Time  `json:"started_at"`
	CompletedAt    *time.Time `json:"completed_at"`
	// WholeRead says that all of the database was read, and not only what
	// changed since the backup before.
	WholeRead bool `json:"whole_read"`
	// Verification is whether the backup was verified by a restore.
	Verification Verification `json:"verification"`
	// DeletionPending says that the backup is being removed: a start finishes it.
	DeletionPending bool `json:"condemned"`
	// Cut says that a failed backup gave way to something, or ended with the
	// appliance: there is nothing to mend.
	Cut bool `json:"cut"`
	// Pin keeps the backup from expiring and from being deleted.
	Pin *Pin `json:"pin"`
	// UnpinnedAt is when the last pin was taken off, nil for never. The backup is
	// kept from then on as long as one that has just been made.
	UnpinnedAt *time.Time `json:"unpinned_at"`
	// ExpiresAt is when the backup may be removed, nil for never. It is not
	// kept: it depends on the other backups.
	ExpiresAt *time.Time `json:"-"`
}

// VerificationStatus is how far the verification of a backup is.
type VerificationStatus string

// The states of a verification; the last two are final.
const (
	VerificationUnverified VerificationStatus = "unverified"
	VerificationRunning    VerificationStatus = "running"
	VerificationVerified   VerificationStatus = "verified"
	VerificationFailed     VerificationStatus = "failed"
)

// Verification is the verification of a backup: what was seen when it was restored
// beside the database, or why that could not be done.
type Verification struct {
	Status VerificationStatus `json:"status"`
	At     *time.Time         `json:"at"` // when it ended
	Detail string             `json:"detail"`
	// Attempts are those that failed for another reason than damage; the next
	// is made NotBefore.
	Attempts  int       `json:"attempts"`
	NotBefore time.Time `json:"not_before"`
}

// Pin says since when and why a backup is kept.
type Pin struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}
