package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

type importListInput struct {
	PageInput
	FilterInput
	DatabaseID string            `query:"database_id" minLength:"1" maxLength:"64" doc:"Only the one that made the database with this id."`
	Status     wire.ImportStatus `query:"status" doc:"Only those with this status."`
}

func (h *handlers) importList(_ context.Context, call *model.Call, in *importListInput) (core.List[wire.Import], error) {
	filter := imports.Filter{Filter: in.filter(), Database: in.DatabaseID, Status: model.ImportStatus(in.Status)}
	page, err := h.engine.Imports.List(call, filter, in.page())
	return convertList(page, NewImport), err
}

type createImportInput struct {
	Body wire.CreateImport
}

func (h *handlers) importCreate(ctx context.Context, call *model.Call, in *createImportInput) (wire.ImportDetail, error) {
	i, err := h.engine.Imports.Create(ctx, call, imports.NewImport{
		Project: in.Body.Project, Name: in.Body.Name, SourceURL: model.NewSecret(in.Body.SourceURL),
		SameCredentials: in.Body.SameCredentials != nil && *in.Body.SameCredentials, Version: text(in.Body.Version),
		Follow: in.Body.Mode != nil && *in.Body.Mode == wire.ImportFollow, Publication: text(in.Body.Publication),
		Username: text(in.Body.Username), Password: model.NewSecret(text(in.Body.Password)),
	})
	return NewImportDetail(i), err
}

// ImportInput names an import in a path.
type ImportInput struct {
	ImportID string `path:"importId" doc:"Id of the import."`
}

func (h *handlers) importGet(_ context.Context, call *model.Call, in *ImportInput) (wire.ImportDetail, error) {
	i, err := h.engine.Imports.Get(call, in.ImportID)
	return NewImportDetail(i), err
}

type importActInput struct {
	ImportInput
	Body *NoFields
}

func (h *handlers) importCutover(ctx context.Context, call *model.Call, in *importActInput) (wire.ImportDetail, error) {
	i, err := h.engine.Imports.Cutover(ctx, call, in.ImportID)
	return NewImportDetail(i), err
}
