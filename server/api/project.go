package api

import (
	"context"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewProject returns the wire form of a project.
func NewProject(p model.Project) wire.Project {
	return wire.Project{ID: p.ID, Name: p.Name, CreatedAt: utc(p.CreatedAt)}
}

type projectListInput struct {
	PageInput
	NameInput
}

func (h *handlers) projectList(_ context.Context, call *model.Call, in *projectListInput) (core.List[wire.Project], error) {
	page, err := h.engine.Access.ProjectList(call, in.filter(), in.page())
	return convertList(page, NewProject), err
}

type createProjectInput struct {
	Body wire.CreateProject
}

func (h *handlers) projectCreate(_ context.Context, call *model.Call, in *createProjectInput) (wire.Project, error) {
	return taggedProject(call)(h.engine.Access.ProjectCreate(call, in.Body.Name))
}

// taggedProject returns the wire form of a project, and sets the ETag of the response.
func taggedProject(call *model.Call) func(model.Project, error) (wire.Project, error) {
	return func(p model.Project, err error) (wire.Project, error) {
		call.ETag = p.Tag()
		return NewProject(p), err
	}
}

// ProjectInput names a project.
type ProjectInput struct {
	ProjectID string `path:"projectId" doc:"Id of the project." example:"proj_01k6zv7r9pxa3c5n8m2q4t6w8y"`
}

func (h *handlers) projectGet(_ context.Context, call *model.Call, in *ProjectInput) (wire.Project, error) {
	return taggedProject(call)(h.engine.Access.ProjectGet(call, in.ProjectID))
}

type updateProjectInput struct {
	ProjectInput
	Body wire.UpdateProject
}

func (h *handlers) projectUpdate(_ context.Context, call *model.Call, in *updateProjectInput) (wire.Project, error) {
	return taggedProject(call)(h.engine.Access.ProjectRename(call, in.ProjectID, in.Body.Name))
}

func (h *handlers) projectDelete(_ context.Context, call *model.Call, in *ProjectInput) (wire.DeletedRecord, error) {
	err := h.engine.Access.ProjectDelete(call, in.ProjectID)
	return wire.DeletedRecord{ID: in.ProjectID, Deleted: true}, err
}
