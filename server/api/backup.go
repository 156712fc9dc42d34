package api

import (
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewBackup returns the wire form of a backup.
func NewBackup(b model.Backup) wire.Backup {
	view := wire.Backup{
		ID: b.ID, DatabaseID: b.Database, Type: wire.BackupType(b.Type), Method: wire.BackupPhysical, Status: wire.BackupStatus(b.Status), Compression: "zstd",
		ManifestBLAKE3: orAbsent(b.ManifestBLAKE3), PostgresVersion: orAbsent(b.Version), Timeline: orAbsent(b.Timeline),
		StartLSN: orAbsent(b.StartLSN), StopLSN: orAbsent(b.StopLSN),
		StartedAt: utc(b.StartedAt), CompletedAt: utcOrAbsent(b.CompletedAt),
		ExpiresAt: utcOrAbsent(b.ExpiresAt), ProgressPercent: b.Progress, Error: orAbsent(b.Error),
		Verification: wire.Verification{
			Status: wire.VerificationStatus(b.Verification.Status), VerifiedAt: utcOrAbsent(b.Verification.At), Detail: orAbsent(b.Verification.Detail),
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
