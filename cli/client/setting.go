package client

import (
	"context"

	"holdfast/server/api/wire"
)

// ListDatabaseSettings returns the settings of a database that can be changed.
func (c *Client) ListDatabaseSettings(ctx context.Context, id string) (wire.SettingList, error) {
	return one[wire.SettingList](ctx, c, "GET", path("databases", id, "settings"), nil)
}

// UpdateDatabaseSettings changes settings of a database, and returns all of them.
func (c *Client) UpdateDatabaseSettings(ctx context.Context, id string, in wire.UpdateSettings) (wire.SettingList, error) {
	return one[wire.SettingList](ctx, c, "PATCH", path("databases", id, "settings"), in)
}
