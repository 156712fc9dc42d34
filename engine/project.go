package engine

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func (e *Engine) newProject(organization, name string) model.Project {
	return model.Project{ID: e.newID(model.ResourceProject), Organization: organization, Name: name, CreatedAt: e.clock()}
}

// ProjectCreate makes a project in the call's organization.
func (e *Engine) ProjectCreate(call *model.Call, name string) (model.Project, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Project{}, err
	}
	project := e.newProject(call.Organization, name)
	call.Resource = model.Resource{Type: model.ResourceProject, ID: project.ID, Name: name}
	err := e.change(call, func(tx *meta.Tx) error {
		return nameTaken(tx.Projects().Insert(project), model.ResourceProject, name)
	})
	return project, err
}

// ProjectList returns the projects of the call's organization.
func (e *Engine) ProjectList(call *model.Call, page Page) (List[model.Project], error) {
	return listRecords(e, e.meta.View, call, model.ActionProjectList, (*meta.Tx).Projects, page,
		func(p model.Project) string { return p.ID })
}

// Projects returns every project of the call's organization, newest first.
func (e *Engine) Projects(call *model.Call) (all []model.Project, err error) {
	err = e.meta.View(func(tx *meta.Tx) (err error) {
		all, err = allBy(tx.Projects(), meta.ByOrganization, meta.Key(call.Organization))
		return err
	})
	return all, err
}

// projectOf returns the project with id if it belongs to the organization.
func projectOf(tx *meta.Tx, organization, id string) (model.Project, error) {
	project, err := tx.Projects().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && project.Organization != organization {
		return project, model.NotFound(model.ResourceProject, id)
	}
	return project, err
}
