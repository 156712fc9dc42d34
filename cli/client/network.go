package client

import (
	"context"

	"holdfast/server/api/wire"
)

// GetDatabaseSSL returns the encryption settings of the database's connections.
func (c *Client) GetDatabaseSSL(ctx context.Context, id string) (wire.SSL, error) {
	return one[wire.SSL](ctx, c, "GET", path("databases", id, "ssl"), nil)
}

// GetDatabaseAllowlist returns the addresses that may connect.
func (c *Client) GetDatabaseAllowlist(ctx context.Context, id string) (wire.Allowlist, error) {
	return one[wire.Allowlist](ctx, c, "GET", path("databases", id, "allowlist"), nil)
}

// ReplaceDatabaseAllowlist replaces the whole list. With an empty list, no
// address can connect.
func (c *Client) ReplaceDatabaseAllowlist(ctx context.Context, id string, in wire.ReplaceAllowlist) (wire.Allowlist, error) {
	if in.Entries == nil {
		in.Entries = []string{} // null is not a list
	}
	return one[wire.Allowlist](ctx, c, "PUT", path("databases", id, "allowlist"), in)
}

// GetDatabaseRLS returns the row-level security of all tables of the database dbname of PostgreSQL; "" means the main one.
func (c *Client) GetDatabaseRLS(ctx context.Context, id, dbname string) (wire.RLS, error) {
	rls, _, err := call[wire.RLS](ctx, c, "GET", path("databases", id, "rls"), named(dbname), nil)
	return rls, err
}

// SetDatabaseRLS turns the row-level security of a table of the main database on or off.
func (c *Client) SetDatabaseRLS(ctx context.Context, id string, in wire.SetRLS) (wire.RLSTable, error) {
	return one[wire.RLSTable](ctx, c, "POST", path("databases", id, "rls"), in)
}
