package api

import (
	"context"

	"holdfast/engine"
	"holdfast/engine/model"
)

// The operations here are the specification's, and not yet this version's.
// They pass the same gate, check the same form, know the same resources, and
// say truthfully that they cannot.

// Never is the answer there is not yet.
type Never struct{}

func absent(message string) error { return model.Errorf(model.CodeForbidden, "%s", message) }

const noImports = "imports are not part of this version; pg_dump and psql with the connection's URL bring a database over"

func (h *handlers) importList(context.Context, *model.Call, *PageInput) (engine.List[Never], error) {
	return engine.List[Never]{Items: []Never{}}, nil
}

// CreateImport is where a database is imported from.
type CreateImport struct {
	Project         string  `json:"project" maxLength:"64" doc:"Id of the project."`
	Name            string  `json:"name" maxLength:"63"`
	SourceURL       string  `json:"source_url" minLength:"1" maxLength:"4096" doc:"postgresql://… of the database to copy."`
	SameCredentials *bool   `json:"same_credentials" required:"false"`
	Username        *string `json:"username" required:"false" minLength:"1" maxLength:"63"`
	Password        *string `json:"password" required:"false" minLength:"8" maxLength:"128" format:"password"`
}

type createImportInput struct {
	Body CreateImport
}

func (h *handlers) importCreate(context.Context, *model.Call, *createImportInput) (Never, error) {
	return Never{}, absent(noImports)
}

type importInput struct {
	ImportID string `path:"importId" doc:"Id of the import."`
}

func (h *handlers) importGet(_ context.Context, call *model.Call, in *importInput) (Never, error) {
	call.Resource = model.Resource{Type: model.ResourceImport, ID: in.ImportID}
	return Never{}, model.NotFound(model.ResourceImport, in.ImportID)
}
