package access

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// TestProjectsAreLimited: an organization has at most MaxProjects projects, and the others have as many of their own.
func TestProjectsAreLimited(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	if err := c.core.Meta.Update(func(tx *meta.Tx) (err error) {
		for n := 1; n < model.MaxProjects && err == nil; n++ { // beside the one of the first start
			err = tx.Projects().Insert(model.Project{ID: fmt.Sprintf("proj_%d", n), Organization: c.org, Name: fmt.Sprint(n)})
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := c.ProjectCreate(c.operator(model.ActionProjectCreate), "another")
		return err
	}
	if err := create(); model.CodeOf(err) != model.CodeForbidden || !strings.Contains(err.Error(), "delete one") {
		t.Errorf("beyond the limit: %v", err)
	}
	other, err := c.OrganizationCreate(c.operator(model.ActionOrganizationCreate), "other")
	if err != nil {
		t.Fatal(err)
	}
	call := c.operator(model.ActionProjectCreate)
	call.Organization = other.ID
	if _, err := c.ProjectCreate(call, "another"); err != nil {
		t.Errorf("of another organization: %v", err)
	}
	if err := c.ProjectDelete(c.operator(model.ActionProjectDelete), "proj_1"); err != nil {
		t.Fatal(err)
	}
	if err := create(); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
}

// TestOnlyProjectStays: the last project of an organization cannot be deleted, whatever other organizations have.
func TestOnlyProjectStays(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	if _, err := c.OrganizationCreate(c.operator(model.ActionOrganizationCreate), "other"); err != nil {
		t.Fatal(err)
	}
	projects, err := c.Projects(c.operator(model.ActionProjectList))
	if err != nil || len(projects) != 1 {
		t.Fatalf("%+v, %v", projects, err)
	}
	another, err := c.ProjectCreate(c.operator(model.ActionProjectCreate), "another")
	if err != nil {
		t.Fatal(err)
	}
	remove := func(id string) error { return c.ProjectDelete(c.operator(model.ActionProjectDelete), id) }
	if err := remove(projects[0].ID); err != nil {
		t.Errorf("one of two: %v", err)
	}
	if err := remove(another.ID); model.CodeOf(err) != model.CodeConflict {
		t.Errorf("the only one: %v", err)
	}
}

// TestProjectOfInterruptedMove: a project stays while a database may come back to it.
func TestProjectOfInterruptedMove(t *testing.T) {
	t.Parallel()
	c := openConsole(t)
	left, err := c.ProjectCreate(c.operator(model.ActionProjectCreate), "left")
	if err != nil {
		t.Fatal(err)
	}
	db := model.Database{ID: "db_1", Organization: c.org, Name: "shop", Project: "proj_other", PendingChange: &model.PendingChange{Before: &model.Database{Project: left.ID}}}
	if err := c.core.Meta.Update(func(tx *meta.Tx) error { return tx.Databases().Insert(db) }); err != nil {
		t.Fatal(err)
	}
	remove := func() error { return c.ProjectDelete(c.operator(model.ActionProjectDelete), left.ID) }
	if err := remove(); model.CodeOf(err) != model.CodeConflict || !strings.Contains(err.Error(), "databases: 1") {
		t.Errorf("while the move is pending: %v", err)
	}
	if err := c.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Databases().Change(db.ID, func(d *model.Database) { d.PendingChange = nil })
	}); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
