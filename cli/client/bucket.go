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

// GetBucketRestore returns to which moments a bucket can be brought back, and its newest
// restore.
func (c *Client) GetBucketRestore(ctx context.Context, id string) (wire.BucketHistory, error) {
	return one[wire.BucketHistory](ctx, c, "GET", path("buckets", id, "restore"), nil)
}

// RestoreBucket starts bringing a bucket back to a moment, or returns the plan of that
// with in.DryRun.
func (c *Client) RestoreBucket(ctx context.Context, id string, in wire.RestoreBucket) (wire.BucketRestore, error) {
	return one[wire.BucketRestore](ctx, c, "POST", path("buckets", id, "restore"), in)
}

// AwaitBucketRestore returns the newest restore of a bucket once it has ended. Until then it passes its states to
// seen.
func (c *Client) AwaitBucketRestore(ctx context.Context, id string, seen func(wire.BucketRestore)) (wire.BucketRestore, error) {
	for pause := firstPoll; ; pause = min(pause*3/2, lastPoll) {
		history, err := patiently(ctx, func(ctx context.Context) (wire.BucketHistory, error) { return c.GetBucketRestore(ctx, id) })
		if err != nil || history.Restore == nil {
			return wire.BucketRestore{}, err
		}
		if history.Restore.Status != wire.BucketRestoreRunning {
			return *history.Restore, nil
		}
		seen(*history.Restore)
		if err := sleep(ctx, pause); err != nil {
			return *history.Restore, err
		}
	}
}
