package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// ProjectOptions select projects; an empty field selects all. Filter.Project is not used.
type ProjectOptions struct {
	ListOptions
	Filter
}

// ListProjects returns a page of the projects.
func (c *Client) ListProjects(ctx context.Context, o ProjectOptions) (Page[wire.Project], error) {
	return list[wire.Project](ctx, c, "/projects", o.add(o.query()))
}

// Projects iterates over the projects that o selects.
func (c *Client) Projects(ctx context.Context, o ProjectOptions) iter.Seq2[wire.Project, error] {
	return all(ctx, o, func(o *ProjectOptions) *ListOptions { return &o.ListOptions }, c.ListProjects)
}

// CreateProject creates a project.
func (c *Client) CreateProject(ctx context.Context, in wire.CreateProject) (wire.Project, error) {
	return one[wire.Project](ctx, c, "POST", "/projects", in)
}

// GetProject returns a project's record.
func (c *Client) GetProject(ctx context.Context, id string) (wire.Project, error) {
	return one[wire.Project](ctx, c, "GET", path("projects", id), nil)
}

// UpdateProject gives a project another name.
func (c *Client) UpdateProject(ctx context.Context, id string, in wire.UpdateProject) (wire.Project, error) {
	return one[wire.Project](ctx, c, "PATCH", path("projects", id), in)
}

// DeleteProject deletes a project that holds nothing.
func (c *Client) DeleteProject(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("projects", id), nil)
}
