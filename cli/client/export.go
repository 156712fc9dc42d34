package client

import (
	"context"

	"holdfast/server/api/wire"
)

// newest is how far the export of the newest backup is.
func newest(x wire.Export) wire.NewerExport {
	if x.Newer != nil {
		return *x.Newer
	}
	return wire.NewerExport{ID: x.ID, Status: x.Status, Error: x.Error}
}

// GetExport returns the newest export of a database that is ready, else how
// far the newest is.
func (c *Client) GetExport(ctx context.Context, database string) (wire.Export, error) {
	return one[wire.Export](ctx, c, "GET", path("databases", database, "export"), nil)
}

// AwaitExport waits for the export that follows the newest backup to be ready
// or to have failed, and not for those of backups that are completed meanwhile.
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
