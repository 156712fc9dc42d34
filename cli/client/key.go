package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// KeyOptions select API keys; an empty field selects all. Keys have no project.
type KeyOptions struct {
	ListOptions
	Filter
	Preset wire.KeyPreset
	Source wire.KeySource
}

// ListKeys returns a page of the API keys.
func (c *Client) ListKeys(ctx context.Context, o KeyOptions) (Page[wire.Key], error) {
	query := setTexts(o.add(o.query()), map[string]string{"preset": string(o.Preset), "source": string(o.Source)})
	return list[wire.Key](ctx, c, "/account/api-keys", query)
}

// Keys iterates over the API keys that o selects.
func (c *Client) Keys(ctx context.Context, o KeyOptions) iter.Seq2[wire.Key, error] {
	return all(ctx, o, func(o *KeyOptions) *ListOptions { return &o.ListOptions }, c.ListKeys)
}

// CreateKey creates an API key, which may do at most what the key in use may.
func (c *Client) CreateKey(ctx context.Context, in wire.CreateKey) (wire.CreatedKey, error) {
	return one[wire.CreatedKey](ctx, c, "POST", "/account/api-keys", in)
}

// GetKey returns an API key's record.
func (c *Client) GetKey(ctx context.Context, id string) (wire.Key, error) {
	return one[wire.Key](ctx, c, "GET", path("account", "api-keys", id), nil)
}

// UpdateKey renames an API key, or makes it expire sooner.
func (c *Client) UpdateKey(ctx context.Context, id string, in wire.UpdateKey) (wire.Key, error) {
	return one[wire.Key](ctx, c, "PATCH", path("account", "api-keys", id), in)
}

// RevokeKey ends an API key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) (wire.Key, error) {
	return one[wire.Key](ctx, c, "DELETE", path("account", "api-keys", id), nil)
}

// GetStorageCredentials returns the key in use as an access key for the S3 endpoint.
func (c *Client) GetStorageCredentials(ctx context.Context) (wire.StorageCredentials, error) {
	return one[wire.StorageCredentials](ctx, c, "GET", "/account/storage-credentials", nil)
}
