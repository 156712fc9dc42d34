package client

import (
	"context"

	"holdfast/server/api/wire"
)

// ListPostgresVersions returns the versions of PostgreSQL that databases can have.
func (c *Client) ListPostgresVersions(ctx context.Context) (wire.PostgresVersionList, error) {
	return one[wire.PostgresVersionList](ctx, c, "GET", "/versions", nil)
}
