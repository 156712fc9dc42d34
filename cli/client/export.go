package client

import (
	"context"

	"holdfast/server/api/wire"
)

// newest returns the state of the newest backup's export.
func newest(x wire.Export) wire.NewerExport {
	if x.Newer != nil {
		return *x.Newer
	}
	return wire.NewerExport{ID: x.ID, Status: x.Status, Error: x.Error}
}

// GetExport returns the newest ready export of a database; without one, the
// state of the newest export.
func (c *Client) GetExport(ctx context.Context, database string) (wire.Export, error) {
	return one[wire.Export](ctx, c, "GET", path("databases", database, "export"), nil)
}

// CreateExport requests an export of a database now.
func (c *Client) CreateExport(ctx context.Context, database string) (wire.Export, error) {
	return one[wire.Export](ctx, c, "POST", path("databases", database, "export"), nil)
}

// AwaitExport waits until the newest backup's export is ready or has failed. It
// does not wait for the exports of backups that complete meanwhile.
func (c *Client) AwaitExport(ctx context.Context, database string, seen func(wire.Export)) (wire.Export, error) {
	wanted := ""
	return await(ctx,
		func(ctx context.Context) (wire.Export, error) { return c.GetExport(ctx, database) },
		func(x wire.Export) bool {
			last := newest(x)
			if wanted == "" {
				wanted = last.ID
			}
			return x.ID == wanted && x.Status == wire.ExportReady || last.Status == wire.ExportReady || last.Status == wire.ExportFailed
		}, seen)
}
