package engine

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// OrganizationCreate makes an organization with a project `default`.
func (e *Engine) OrganizationCreate(call *model.Call, name string) (model.Organization, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Organization{}, err
	}
	org := model.Organization{ID: e.newID(model.ResourceOrganization), Name: name, CreatedAt: e.clock()}
	project := e.newProject(org.ID, model.DefaultName)
	call.Organization = org.ID
	call.Resource = model.Resource{Type: model.ResourceOrganization, ID: org.ID, Name: name}
	err := e.change(call, func(tx *meta.Tx) error {
		if err := tx.Organizations().Insert(org); err != nil {
			return nameTaken(err, model.ResourceOrganization, name)
		}
		return tx.Projects().Insert(project)
	})
	return org, err
}

// OrganizationList returns every organization, oldest first. Only the
// operator sees more than one.
func (e *Engine) OrganizationList() ([]model.Organization, error) {
	orgs := []model.Organization{}
	err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Organizations().All(func(o model.Organization) error {
			orgs = append(orgs, o)
			return nil
		})
	})
	return orgs, err
}

// Organization returns the organization with the id or name given.
func (e *Engine) Organization(idOrName string) (model.Organization, error) {
	var org model.Organization
	err := e.meta.View(func(tx *meta.Tx) (err error) {
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

// nameTaken turns a clash of names into what the client is told.
func nameTaken(err error, t model.ResourceType, name string) error {
	if errors.Is(err, meta.ErrExists) {
		return model.Errorf(model.CodeConflict, "the %s %q exists already; choose another name", t, name)
	}
	return err
}
