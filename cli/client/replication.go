package client

import (
	"context"
	"net/url"

	"holdfast/server/api/wire"
)

// GetDatabaseReplication returns the slots and publications of a database, and how its
// changes are streamed.
func (c *Client) GetDatabaseReplication(ctx context.Context, id string) (wire.Replication, error) {
	return one[wire.Replication](ctx, c, "GET", path("databases", id, "replication"), nil)
}

// DropReplicationSlot drops a replication slot. The API refuses one that a client
// reads, unless force ends the client's session.
func (c *Client) DropReplicationSlot(ctx context.Context, id, slot string, force bool) (wire.DroppedSlot, error) {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	dropped, _, err := call[wire.DroppedSlot](ctx, c, "DELETE", path("databases", id, "replication", "slots", slot), query, nil)
	return dropped, err
}
