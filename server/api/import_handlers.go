package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/engine/imports"
	"holdfast/engine/model"
)

func (h *handlers) importList(_ context.Context, call *model.Call, in *PageInput) (core.List[Import], error) {
	page, err := h.engine.Imports.List(call, in.page())
	return convertList(page, NewImport), err
}

// CreateImport is where a database is imported from.
type CreateImport struct {
	Project         string  `json:"project" maxLength:"64" doc:"Id of the project."`
	Name            string  `json:"name" maxLength:"63" doc:"Of the new database."`
	SourceURL       string  `json:"source_url" minLength:"1" maxLength:"4096" format:"password" doc:"postgresql://user:password@host:port/database of the database to copy, over TCP, with special characters as %XX. Of parameters it may have sslmode, channel_binding and options."`
	SameCredentials *bool   `json:"same_credentials" required:"false" doc:"Whether the new database gets the user and password of the source."`
	Username        *string `json:"username" required:"false" minLength:"1" maxLength:"63" doc:"The role that will own it; app when left out."`
	Password        *string `json:"password" required:"false" minLength:"12" maxLength:"128" format:"password" doc:"Printable characters, and not easy to guess; generated when left out."`
}

// TransformSchema implements huma.SchemaTransformer.
func (CreateImport) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	describe(s, "name", databaseName)
	describe(s, "username", databaseUser)
	describe(s, "", rule{"dependentSchemas": map[string]rule{"same_credentials": {
		"if": properties(map[string]rule{"same_credentials": {"const": true}}), "then": absent("username", "password"),
	}}})
	return s
}

type createImportInput struct {
	Body CreateImport
}

func (h *handlers) importCreate(ctx context.Context, call *model.Call, in *createImportInput) (ImportDetail, error) {
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

func (h *handlers) importGet(_ context.Context, call *model.Call, in *importInput) (ImportDetail, error) {
	i, err := h.engine.Imports.Get(call, in.ImportID)
	return NewImportDetail(i), err
}
