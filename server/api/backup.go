package api

import (
	"time"

	"holdfast/engine/model"
)

// Backup is a backup's record.
type Backup struct {
	ID              string             `json:"id"`
	DatabaseID      string             `json:"database_id"`
	Type            model.BackupType   `json:"type"`
	Method          BackupMethod       `json:"method"`
	Status          model.BackupStatus `json:"status"`
	Pinned          bool               `json:"pinned"`
	PinnedAt        *time.Time         `json:"pinned_at"`
	PinReason       *string            `json:"pin_reason"`
	SizeBytes       *int64             `json:"size_bytes" doc:"Of the database's files; null until completed."`
	StoredBytes     *int64             `json:"stored_bytes" doc:"What the backup added to those before it, compressed; null until completed."`
	Compression     string             `json:"compression"`
	ManifestBLAKE3  *string            `json:"manifest_blake3"`
	PostgresVersion *string            `json:"postgres_version"`
	Timeline        *int               `json:"timeline"`
	StartLSN        *string            `json:"start_lsn"`
	StopLSN         *string            `json:"stop_lsn"`
	StartedAt       time.Time          `json:"started_at"`
	CompletedAt     *time.Time         `json:"completed_at"`
	ExpiresAt       *time.Time         `json:"expires_at"`
	ProgressPercent int                `json:"progress_percent" minimum:"0" maximum:"100"`
	Error           *string            `json:"error"`
	Verification    Verification       `json:"verification"`
}

// Verification is whether a backup was proven to restore.
type Verification struct {
	Status     model.VerificationStatus `json:"status"`
	VerifiedAt *time.Time               `json:"verified_at"`
	Detail     *string                  `json:"detail"`
}

// NewBackup returns the wire form of a backup.
func NewBackup(b model.Backup) Backup {
	view := Backup{
		ID: b.ID, DatabaseID: b.Database, Type: b.Type, Method: "physical", Status: b.Status, Compression: "zstd",
		ManifestBLAKE3: orAbsent(b.ManifestBLAKE3), PostgresVersion: orAbsent(b.Version), Timeline: orAbsent(b.Timeline),
		StartLSN: orAbsent(b.StartLSN), StopLSN: orAbsent(b.StopLSN),
		StartedAt: utc(b.StartedAt), CompletedAt: utcOrAbsent(b.CompletedAt),
		ExpiresAt: utcOrAbsent(b.ExpiresAt), ProgressPercent: b.Progress, Error: orAbsent(b.Error),
		Verification: Verification{
			Status: b.Verification.Status, VerifiedAt: utcOrAbsent(b.Verification.At), Detail: orAbsent(b.Verification.Detail),
		},
	}
	if b.Pin != nil {
		view.Pinned, view.PinnedAt, view.PinReason = true, utcOrAbsent(&b.Pin.At), orAbsent(b.Pin.Reason)
	}
	if b.Status == model.BackupCompleted {
		view.SizeBytes, view.StoredBytes = &b.SizeBytes, &b.StoredBytes
	}
	return view
}
