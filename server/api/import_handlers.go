package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/imports"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

func (h *handlers) importList(_ context.Context, call *model.Call, in *PageInput) (core.List[wire.Import], error) {
	page, err := h.engine.Imports.List(call, in.page())
	return convertList(page, NewImport), err
}

type createImportInput struct {
	Body wire.CreateImport
}

func (h *handlers) importCreate(ctx context.Context, call *model.Call, in *createImportInput) (wire.ImportDetail, error) {
	i, err := h.engine.Imports.Create(ctx, call, imports.NewImport{
		Project: in.Body.Project, Name: in.Body.Name, SourceURL: model.NewSecret(in.Body.SourceURL),
		SameCredentials: in.Body.SameCredentials != nil && *in.Body.SameCredentials,
		Username:        text(in.Body.Username), Password: model.NewSecret(text(in.Body.Password)),
	})
	return NewImportDetail(i), err
}

type importInput struct {
	ImportID string `path:"importId" doc:"Id of the import."`
}

func (h *handlers) importGet(_ context.Context, call *model.Call, in *importInput) (wire.ImportDetail, error) {
	i, err := h.engine.Imports.Get(call, in.ImportID)
	return NewImportDetail(i), err
}
