package api

import (
	"context"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
)

// Export is a logical copy of a database, to be restored with pg_restore.
type Export struct {
	ID              string             `json:"id"`
	Status          model.ExportStatus `json:"status"`
	Format          ExportFormat       `json:"format" doc:"Of pg_dump."`
	Filename        *string            `json:"filename"`
	SizeBytes       *int64             `json:"size_bytes"`
	ChecksumSHA256  *string            `json:"checksum_sha256"`
	PostgresVersion *string            `json:"postgres_version"`
	CreatedAt       time.Time          `json:"created_at"`
	DownloadURL     *string            `json:"download_url" doc:"Works without a key until expires_at; answers ranges."`
	ExpiresAt       *time.Time         `json:"expires_at" doc:"Of the download URL."`
	Error           *string            `json:"error"`
	Newer           *NewerExport       `json:"newer" doc:"What is to replace this export: it follows a newer backup."`
}

// NewerExport is how far the export of a newer backup is.
type NewerExport struct {
	ID     string             `json:"id"`
	Status model.ExportStatus `json:"status"`
	Error  *string            `json:"error"`
}

func (h *handlers) exportGet(_ context.Context, call *model.Call, in *DatabaseInput) (Export, error) {
	x, err := h.engine.Recovery.ExportGet(call, in.ID)
	return h.newExport(x), err
}

func (h *handlers) newExport(x recovery.ExportView) Export {
	view := Export{
		ID: x.ID, Status: x.Status, Format: "custom", CreatedAt: utc(x.CreatedAt), Error: orAbsent(x.Error),
		Filename: orAbsent(x.Filename), ChecksumSHA256: orAbsent(x.ChecksumSHA256), PostgresVersion: orAbsent(x.Version),
	}
	if x.Status == model.ExportReady {
		url := h.baseURL + x.DownloadPath
		view.SizeBytes, view.DownloadURL, view.ExpiresAt = &x.SizeBytes, &url, utcOrAbsent(&x.ExpiresAt)
	}
	if x.Newer != nil {
		view.Newer = &NewerExport{ID: x.Newer.ID, Status: x.Newer.Status, Error: orAbsent(x.Newer.Error)}
	}
	return view
}
