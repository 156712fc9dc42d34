package access

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func (s *Service) newProject(organization, name string) model.Project {
	return model.Project{ID: s.core.NewID(model.ResourceProject), Organization: organization, Name: name, CreatedAt: s.core.Clock()}
}

// ProjectCreate creates a project in the call's organization.
func (s *Service) ProjectCreate(call *model.Call, name string) (model.Project, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Project{}, err
	}
	project := s.newProject(call.Organization, name)
	call.Resource = model.Resource{Type: model.ResourceProject, ID: project.ID, Name: name}
	err := s.core.Change(call, func(tx *meta.Tx) error {
		return core.NameTaken(tx.Projects().Insert(project), model.ResourceProject, name)
	})
	return project, err
}

// ProjectList returns the projects of the call's organization.
func (s *Service) ProjectList(call *model.Call, page core.Page) (core.List[model.Project], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionProjectList, (*meta.Tx).Projects, page,
		core.Selection[model.Project]{})
}

// Projects returns every project of the call's organization, newest first.
func (s *Service) Projects(call *model.Call) (all []model.Project, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) (err error) {
		all, err = core.AllBy(tx.Projects(), meta.ByOrganization, meta.Key(call.Organization))
		return err
	})
	return all, err
}
