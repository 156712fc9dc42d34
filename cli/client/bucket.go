package client

import (
	"context"
	"iter"
	"net/url"
	"time"
)

// Bucket is a bucket's record.
type Bucket struct {
	ID          string    `json:"id"`
	Project     string    `json:"project"` // id
	Name        string    `json:"name"`
	Public      bool      `json:"public"`
	PublicURL   *string   `json:"public_url"`
	ObjectCount int64     `json:"object_count"`
	SizeBytes   int64     `json:"size_bytes"`
	ExpireDays  *int      `json:"expire_after_days"` // nil keeps objects
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

// CreateBucket is what a bucket is made of.
type CreateBucket struct {
	Project string `json:"project"` // id
	Name    string `json:"name"`
	Public  bool   `json:"public"` // whether anybody may download its objects
}

// UpdateBucket is what of a bucket is to change; nil leaves it as it is.
type UpdateBucket struct {
	Public     *bool `json:"public,omitempty"`
	ExpireDays *int  `json:"expire_after_days,omitempty"` // 0 keeps objects; setting or shortening it needs what deleting them needs
}

// ListBuckets returns a page of the buckets.
func (c *Client) ListBuckets(ctx context.Context, o ListOptions) (Page[Bucket], error) {
	return list[Bucket](ctx, c, "/buckets", o.query())
}

// Buckets walks all buckets.
func (c *Client) Buckets(ctx context.Context) iter.Seq2[Bucket, error] {
	return All(ctx, c.ListBuckets)
}

// CreateBucket makes a bucket.
func (c *Client) CreateBucket(ctx context.Context, in CreateBucket) (Bucket, error) {
	return one[Bucket](ctx, c, "POST", "/buckets", in)
}

// GetBucket returns a bucket's record.
func (c *Client) GetBucket(ctx context.Context, id string) (Bucket, error) {
	return one[Bucket](ctx, c, "GET", path("buckets", id), nil)
}

// UpdateBucket changes a bucket.
func (c *Client) UpdateBucket(ctx context.Context, id string, in UpdateBucket) (Bucket, error) {
	return one[Bucket](ctx, c, "PATCH", path("buckets", id), in)
}

// DeleteBucket deletes a bucket. One that holds objects is refused, unless
// force deletes them with it.
func (c *Client) DeleteBucket(ctx context.Context, id string, force bool) (DeletedResource, error) {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	deleted, _, err := call[DeletedResource](ctx, c, "DELETE", path("buckets", id), query, nil)
	return deleted, err
}
