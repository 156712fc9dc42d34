package model

import (
	"strconv"
	"strings"
	"time"
)

// BackupType says why a backup was made.
type BackupType string

// The kinds of backup.
const (
	BackupManual    BackupType = "manual"
	BackupScheduled BackupType = "scheduled"
)

// BackupStatus is the state of a backup.
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
	Version      string       `json:"version"`    // of PostgreSQL
	Generation   int          `json:"generation"` // of the data directory that was backed up
	Timeline     int          `json:"timeline"`
	StartLSN     string       `json:"start_lsn"`
	StopLSN      string       `json:"stop_lsn"`
	SizeBytes    int64        `json:"size_bytes"`
	StoredBytes  int64        `json:"stored_bytes"` // added to the data of earlier backups
	// ManifestBLAKE3 is the hash of the backup's manifest, in hex.
	ManifestBLAKE3 string     `json:"manifest_blake3"`
	StartedAt      time.Time  `json:"started_at"`
	CompletedAt    *time.Time `json:"completed_at"`
	// WholeRead reports that the backup read the whole database, not only what
	// changed since the previous backup.
	WholeRead bool `json:"whole_read"`
	// Verification is the result of restoring the backup as a test.
	Verification Verification `json:"verification"`
	// DeletionPending means that the backup is being removed; the sweep or the next start completes a removal that was interrupted.
	DeletionPending bool `json:"condemned"`
	// Cut means that a failed backup was interrupted by another operation or by
	// shutdown, so nothing needs to be fixed.
	Cut bool `json:"cut"`
	// Pin keeps the backup from expiring and from being deleted.
	Pin *Pin `json:"pin"`
	// UnpinnedAt is when the last pin was removed, nil if never. From then on the
	// backup is kept as long as a new one.
	UnpinnedAt *time.Time `json:"unpinned_at"`
	// ExpiresAt is when the backup may be removed, nil for never. It is not stored
	// because it depends on the other backups.
	ExpiresAt *time.Time `json:"-"`
}

// Major returns the major version of PostgreSQL of the backup, 0 if that is not known.
func (b Backup) Major() int {
	digits := strings.IndexFunc(b.Version+".", func(r rune) bool { return r < '0' || r > '9' })
	major, _ := strconv.Atoi(b.Version[:digits])
	return major
}

// VerificationStatus is the state of a backup's verification.
type VerificationStatus string

// The states of a verification; the last two are final.
const (
	VerificationUnverified VerificationStatus = "unverified"
	VerificationRunning    VerificationStatus = "running"
	VerificationVerified   VerificationStatus = "verified"
	VerificationFailed     VerificationStatus = "failed"
)

// Verification is the verification of a backup: what a test restore beside the
// database showed, or why it could not run.
type Verification struct {
	Status VerificationStatus `json:"status"`
	At     *time.Time         `json:"at"` // when it ended
	Detail string             `json:"detail"`
	// Attempts counts the attempts that failed for reasons other than damage. The
	// next one runs no earlier than NotBefore.
	Attempts  int       `json:"attempts"`
	NotBefore time.Time `json:"not_before"`
}

// Pin records since when and why a backup is kept.
type Pin struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}
