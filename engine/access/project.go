package access

import (
	"fmt"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

func (s *Service) newProject(organization, name string) model.Project {
	return model.Project{ID: s.core.NewID(model.ResourceProject), Organization: organization, Name: name, CreatedAt: s.core.Clock()}
}

func projectResource(p model.Project) model.Resource {
	return model.Resource{Type: model.ResourceProject, ID: p.ID, Name: p.Name}
}

// ProjectCreate creates a project in the call's organization.
func (s *Service) ProjectCreate(call *model.Call, name string) (model.Project, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Project{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Project{}, err
	}
	project := s.newProject(call.Organization, name)
	call.Resource = projectResource(project)
	err := s.core.Change(call, func(tx *meta.Tx) error { return insertProject(tx, project) })
	return project, err
}

// insertProject stores a project, unless its organization has as many as it can have.
func insertProject(tx *meta.Tx, project model.Project) error {
	if tx.Projects().HasAtLeast(meta.ByOrganization, meta.Key(project.Organization), model.MaxProjects) {
		return model.Errorf(model.CodeForbidden, "an organization can have %d projects; delete one that is empty first", model.MaxProjects)
	}
	return core.NameTaken(tx.Projects().Insert(project), model.ResourceProject, project.Name)
}

// ProjectList returns the projects of the call's organization that match the filter,
// which has no project.
func (s *Service) ProjectList(call *model.Call, filter core.Filter, page core.Page) (core.List[model.Project], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionProjectList, (*meta.Tx).Projects, page,
		core.Select(filter, func(p model.Project) bool { return filter.Admits("", p.Name, p.CreatedAt) }))
}

// Projects returns every project of the call's organization, newest first.
func (s *Service) Projects(call *model.Call) (all []model.Project, err error) {
	err = s.core.Meta.View(func(tx *meta.Tx) (err error) {
		all, err = core.AllBy(tx.Projects(), meta.ByOrganization, meta.Key(call.Organization))
		return err
	})
	return all, err
}

// ProjectGet returns one project of the call's organization.
func (s *Service) ProjectGet(call *model.Call, id string) (model.Project, error) {
	call.Resource = model.Resource{Type: model.ResourceProject, ID: id}
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Project, error) { return core.ProjectOf(tx, call.Organization, id) })
}

// ProjectRename gives a project another name.
func (s *Service) ProjectRename(call *model.Call, id, name string) (model.Project, error) {
	if err := model.ValidateLabel("name", name); err != nil {
		return model.Project{}, err
	}
	var project model.Project
	err := s.changeProject(call, id, func(tx *meta.Tx) (err error) {
		call.Note("name", name)
		project, err = tx.Projects().Update(id, func(p *model.Project) error {
			p.Name = name
			return nil
		})
		return core.NameTaken(err, model.ResourceProject, name)
	})
	return project, err
}

// ProjectDelete removes a project that holds nothing. The organization's only project
// stays.
func (s *Service) ProjectDelete(call *model.Call, id string) error {
	return s.changeProject(call, id, func(tx *meta.Tx) error {
		if err := projectEmpty(tx, call.Organization, id); err != nil {
			return err
		}
		if !tx.Projects().HasAtLeast(meta.ByOrganization, meta.Key(call.Organization), 2) {
			return model.Errorf(model.CodeConflict, "this is the organization's only project: create another one first")
		}
		return tx.Projects().Delete(id)
	})
}

// changeProject changes a project that is as the call expects it.
func (s *Service) changeProject(call *model.Call, id string, change func(*meta.Tx) error) error {
	call.Resource = model.Resource{Type: model.ResourceProject, ID: id}
	return s.core.Change(call, func(tx *meta.Tx) error {
		project, err := core.ProjectOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		call.Resource = projectResource(project)
		if err := call.Match(project.Tag()); err != nil {
			return err
		}
		return change(tx)
	})
}

// projectEmpty refuses a project that holds a database or a bucket, also one in the
// trash: it could no longer be restored. It also holds a database that is being moved out,
// as long as that can be taken back.
func projectEmpty(tx *meta.Tx, organization, id string) error {
	owner, held := meta.Key(organization), []string{}
	ofDatabases := func(index string) (int, error) {
		return countIn(tx.Databases(), index, owner, func(d model.Database) bool {
			return d.Project == id || d.PendingChange != nil && d.PendingChange.Before != nil && d.PendingChange.Before.Project == id
		})
	}
	for _, kind := range []struct {
		count func() (int, error)
		words string
	}{
		{func() (int, error) { return ofDatabases(meta.ByOrganization) }, "databases"},
		{func() (int, error) {
			return countIn(tx.Buckets(), meta.ByOrganization, owner, func(b model.Bucket) bool { return b.Project == id })
		}, "buckets"},
		{func() (int, error) { return ofDatabases(meta.InTrash) }, "deleted databases"},
		{func() (int, error) {
			return countIn(tx.TrashedBuckets(), meta.ByOrganization, owner, func(b model.TrashedBucket) bool { return b.Project == id })
		}, "deleted buckets"},
	} {
		n, err := kind.count()
		if err != nil {
			return err
		}
		if n > 0 {
			held = append(held, fmt.Sprintf("%s: %d", kind.words, n))
		}
	}
	if len(held) == 0 {
		return nil
	}
	return model.Errorf(model.CodeConflict, "the project is not empty (%s): delete what it holds first, from the trash too", strings.Join(held, ", "))
}

// countIn counts the records with key in an index that match.
func countIn[T any](table meta.Table[T], index string, key []byte, matches func(T) bool) (n int, err error) {
	records, err := core.AllBy(table, index, key)
	for _, record := range records {
		if matches(record) {
			n++
		}
	}
	return n, err
}
