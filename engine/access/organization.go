package access

import (
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// OrganizationCreate creates an organization with a project `default`.
func (s *Service) OrganizationCreate(call *model.Call, name string) (model.Organization, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Organization{}, err
	}
	org := model.Organization{ID: s.core.NewID(model.ResourceOrganization), Name: name, CreatedAt: s.core.Clock()}
	project := s.newProject(org.ID, model.DefaultName)
	call.Organization = org.ID
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: name}
	err := s.core.Change(call, func(tx *meta.Tx) error {
		if err := tx.Organizations().Insert(org); err != nil {
			return core.NameTaken(err, model.ResourceOrganization, name)
		}
		return tx.Projects().Insert(project)
	})
	return org, err
}

// OrganizationList returns every organization, oldest first. Only the operator sees more
// than one.
func (s *Service) OrganizationList() ([]model.Organization, error) {
	orgs := []model.Organization{}
	err := s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(o model.Organization) error {
			orgs = append(orgs, o)
			return nil
		})
	})
	return orgs, err
}

// Organization returns the organization with that id or name.
func (s *Service) Organization(idOrName string) (model.Organization, error) {
	var org model.Organization
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		if org, err = tx.Organizations().Get(idOrName); errors.Is(err, meta.ErrNotFound) {
			org, err = tx.Organizations().Find(meta.ByName, meta.Key(idOrName))
		}
		return err
	})
	if errors.Is(err, meta.ErrNotFound) {
		return org, model.Errorf(model.CodeNotFound, "no organization %q; `holdfast admin org list` shows them", idOrName)
	}
	return org, err
}
