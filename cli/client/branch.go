package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// ListBranches returns a page of the branches of a database.
func (c *Client) ListBranches(ctx context.Context, database string, o ListOptions) (Page[wire.Database], error) {
	return list[wire.Database](ctx, c, path("databases", database, "branches"), o.query())
}

// Branches iterates over the branches of a database.
func (c *Client) Branches(ctx context.Context, database string) iter.Seq2[wire.Database, error] {
	return All(ctx, func(ctx context.Context, o ListOptions) (Page[wire.Database], error) {
		return c.ListBranches(ctx, database, o)
	})
}

// CreateBranch starts to make a branch of a database, whose operation AwaitOperation waits for.
func (c *Client) CreateBranch(ctx context.Context, database string, in wire.CreateBranch) (wire.Branch, error) {
	return one[wire.Branch](ctx, c, "POST", path("databases", database, "branches"), in)
}

// ResetBranch starts to replace the data of a branch by that of its parent.
func (c *Client) ResetBranch(ctx context.Context, branch string, in wire.ResetBranch) (wire.Branch, error) {
	return one[wire.Branch](ctx, c, "POST", path("databases", branch, "branch", "reset"), in)
}

// GetBranchDiff compares the schema of a branch with that of its parent.
func (c *Client) GetBranchDiff(ctx context.Context, branch string) (wire.BranchDiff, error) {
	return one[wire.BranchDiff](ctx, c, "GET", path("databases", branch, "branch", "diff"), nil)
}
