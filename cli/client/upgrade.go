package client

import (
	"context"

	"holdfast/server/api/wire"
)

// UpgradeDatabase starts to upgrade a database to a newer major version of PostgreSQL,
// or its dry run, whose operation AwaitOperation waits for.
func (c *Client) UpgradeDatabase(ctx context.Context, database string, in wire.UpgradeDatabase) (wire.Operation, error) {
	return one[wire.Operation](ctx, c, "POST", path("databases", database, "upgrade"), in)
}
