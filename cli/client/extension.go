package client

import (
	"context"

	"holdfast/server/api/wire"
)

// ListExtensions returns the extensions that the catalogue, the machine or the
// database has.
func (c *Client) ListExtensions(ctx context.Context, id string) (wire.ExtensionList, error) {
	return one[wire.ExtensionList](ctx, c, "GET", path("databases", id, "extensions"), nil)
}

// SetExtension creates an extension, or updates it.
func (c *Client) SetExtension(ctx context.Context, id string, in wire.SetExtension) (wire.Extension, error) {
	return one[wire.Extension](ctx, c, "POST", path("databases", id, "extensions"), in)
}

// DeleteExtension drops an extension.
func (c *Client) DeleteExtension(ctx context.Context, id, name string) (wire.DeletedExtension, error) {
	return one[wire.DeletedExtension](ctx, c, "DELETE", path("databases", id, "extensions", name), nil)
}
