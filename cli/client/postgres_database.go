package client

import (
	"context"
	"net/url"

	"holdfast/server/api/wire"
)

// ListPostgresDatabases returns the databases of PostgreSQL in a database's server: the main one, and those that roles with access
// create have made beside it. Their names are the dbname of other methods.
func (c *Client) ListPostgresDatabases(ctx context.Context, id string) (wire.PostgresDatabaseList, error) {
	return one[wire.PostgresDatabaseList](ctx, c, "GET", path("databases", id, "databases"), nil)
}

// named returns the query that names a database of PostgreSQL.
func named(dbname string) url.Values {
	return setTexts(url.Values{}, map[string]string{"dbname": dbname})
}
