package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"holdfast/server/api/wire"
)

// BucketOptions select buckets; an empty field selects all.
type BucketOptions struct {
	ListOptions
	Filter
	Public *bool
}

// ListBuckets returns a page of the buckets.
func (c *Client) ListBuckets(ctx context.Context, o BucketOptions) (Page[wire.Bucket], error) {
	query := o.add(o.query())
	if o.Public != nil {
		query.Set("public", strconv.FormatBool(*o.Public))
	}
	return list[wire.Bucket](ctx, c, "/buckets", query)
}

// Buckets iterates over the buckets that o selects.
func (c *Client) Buckets(ctx context.Context, o BucketOptions) iter.Seq2[wire.Bucket, error] {
	return all(ctx, o, func(o *BucketOptions) *ListOptions { return &o.ListOptions }, c.ListBuckets)
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
