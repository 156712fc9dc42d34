package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// ListImports returns a page of the imports.
func (c *Client) ListImports(ctx context.Context, o ListOptions) (Page[wire.Import], error) {
	return list[wire.Import](ctx, c, "/imports", o.query())
}

// Imports iterates over all imports.
func (c *Client) Imports(ctx context.Context) iter.Seq2[wire.Import, error] {
	return All(ctx, c.ListImports)
}

// CreateImport starts an import.
func (c *Client) CreateImport(ctx context.Context, in wire.CreateImport) (wire.ImportDetail, error) {
	return one[wire.ImportDetail](ctx, c, "POST", "/imports", in)
}

// GetImport returns an import with its log.
func (c *Client) GetImport(ctx context.Context, id string) (wire.ImportDetail, error) {
	return one[wire.ImportDetail](ctx, c, "GET", path("imports", id), nil)
}

// AwaitImport waits until an import ends. It passes each polled record to seen.
func (c *Client) AwaitImport(ctx context.Context, id string, seen func(wire.ImportDetail)) (wire.ImportDetail, error) {
	return await(ctx,
		func(ctx context.Context) (wire.ImportDetail, error) { return c.GetImport(ctx, id) },
		func(i wire.ImportDetail) bool { return i.Status.Final() }, seen)
}
