package client

import (
	"context"

	"holdfast/server/api/wire"
)

// ListDatabaseRoles returns the roles of a database besides its owner and its
// read-only role.
func (c *Client) ListDatabaseRoles(ctx context.Context, id string) (wire.DatabaseRoleList, error) {
	return one[wire.DatabaseRoleList](ctx, c, "GET", path("databases", id, "roles"), nil)
}

// CreateDatabaseRole creates a role. The result has its password; it is the only copy.
func (c *Client) CreateDatabaseRole(ctx context.Context, id string, in wire.CreateDatabaseRole) (wire.DatabaseRoleSecret, error) {
	return one[wire.DatabaseRoleSecret](ctx, c, "POST", path("databases", id, "roles"), in)
}

// GetDatabaseRole returns a role.
func (c *Client) GetDatabaseRole(ctx context.Context, id, name string) (wire.DatabaseRole, error) {
	return one[wire.DatabaseRole](ctx, c, "GET", path("databases", id, "roles", name), nil)
}

// UpdateDatabaseRole changes a role. Another access ends its sessions.
func (c *Client) UpdateDatabaseRole(ctx context.Context, id, name string, in wire.UpdateDatabaseRole) (wire.DatabaseRole, error) {
	return one[wire.DatabaseRole](ctx, c, "PATCH", path("databases", id, "roles", name), in)
}

// DeleteDatabaseRole deletes a role and ends its sessions. What it owns stays,
// and is the database owner's to use, take and drop.
func (c *Client) DeleteDatabaseRole(ctx context.Context, id, name string) (wire.DeletedDatabaseRole, error) {
	return one[wire.DeletedDatabaseRole](ctx, c, "DELETE", path("databases", id, "roles", name), nil)
}

// RotateDatabaseRolePassword gives a role a new password and ends its sessions. The
// result has the password; it is the only copy.
func (c *Client) RotateDatabaseRolePassword(ctx context.Context, id, name string) (wire.DatabaseRoleSecret, error) {
	return one[wire.DatabaseRoleSecret](ctx, c, "POST", path("databases", id, "roles", name, "rotate-password"), nil)
}
