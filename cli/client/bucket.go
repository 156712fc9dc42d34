package client

import (
	"context"
	"iter"
	"net/url"

	"holdfast/server/api/wire"
)

// ListBuckets returns a page of the buckets.
func (c *Client) ListBuckets(ctx context.Context, o ListOptions) (Page[wire.Bucket], error) {
	return list[wire.Bucket](ctx, c, "/buckets", o.query())
}

// Buckets iterates over all buckets.
func (c *Client) Buckets(ctx context.Context) iter.Seq2[wire.Bucket, error] {
	return All(ctx, c.ListBuckets)
}

// CreateBucket creates a bucket.
func (c *Client) CreateBucket(ctx context.Context, in wire.CreateBucket) (wire.Bucket, error) {
	return one[wire.Bucket](ctx, c, "POST", "/buckets", in)
}

// GetBucket returns a bucket's record.
func (c *Client) GetBucket(ctx context.Context, id string) (wire.Bucket, error) {
	return one[wire.Bucket](ctx, c, "GET", path("buckets", id), nil)
}

// UpdateBucket changes a bucket.
func (c *Client) UpdateBucket(ctx context.Context, id string, in wire.UpdateBucket) (wire.Bucket, error) {
	return one[wire.Bucket](ctx, c, "PATCH", path("buckets", id), in)
}

// DeleteBucket deletes a bucket. The API refuses one that holds objects, unless
// force deletes them with it.
func (c *Client) DeleteBucket(ctx context.Context, id string, force bool) (wire.DeletedResource, error) {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	deleted, _, err := call[wire.DeletedResource](ctx, c, "DELETE", path("buckets", id), query, nil)
	return deleted, err
}
