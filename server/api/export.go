package api

import (
	"context"

	"holdfast/engine/model"
	"holdfast/engine/recovery"
	"holdfast/server/api/wire"
)

func (h *handlers) exportGet(_ context.Context, call *model.Call, in *DBNameInput) (wire.Export, error) {
	x, err := h.engine.Recovery.ExportGet(call, in.ID, in.DBName)
	return h.newExport(x), err
}

type createExportInput struct {
	DatabaseInput
	Body *wire.CreateExport
}

func (h *handlers) exportCreate(ctx context.Context, call *model.Call, in *createExportInput) (wire.Export, error) {
	var wanted wire.CreateExport
	if in.Body != nil {
		wanted = *in.Body
	}
	x, err := h.engine.Recovery.ExportCreate(ctx, call, in.ID, text(wanted.DBName))
	return h.newExport(x), err
}

func (h *handlers) newExport(x recovery.ExportView) wire.Export {
	view := wire.Export{
		ID: x.ID, DBName: orAbsent(x.DBName), Status: wire.ExportStatus(x.Status), Format: wire.ExportCustom, CreatedAt: utc(x.CreatedAt), Error: orAbsent(x.Error),
		Filename: orAbsent(x.Filename), ChecksumSHA256: orAbsent(x.ChecksumSHA256), PostgresVersion: orAbsent(x.Version),
	}
	if x.Status == model.ExportReady {
		url := h.baseURL + x.DownloadPath
		view.SizeBytes, view.DownloadURL, view.ExpiresAt = &x.SizeBytes, &url, utcOrAbsent(&x.ExpiresAt)
	}
	if x.Newer != nil {
		view.Newer = &wire.NewerExport{ID: x.Newer.ID, Status: wire.ExportStatus(x.Newer.Status), Error: orAbsent(x.Newer.Error)}
	}
	return view
}
