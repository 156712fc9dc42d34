package client

import (
	"context"
	"iter"

	"holdfast/server/api/wire"
)

// ListTrashedDatabases returns a page of the deleted databases.
func (c *Client) ListTrashedDatabases(ctx context.Context, o ListOptions) (Page[wire.TrashedDatabase], error) {
	return list[wire.TrashedDatabase](ctx, c, "/trash/databases", o.query())
}

// TrashedDatabases iterates over the deleted databases.
func (c *Client) TrashedDatabases(ctx context.Context) iter.Seq2[wire.TrashedDatabase, error] {
	return All(ctx, c.ListTrashedDatabases)
}

// RestoreTrashedDatabase brings a deleted database back.
func (c *Client) RestoreTrashedDatabase(ctx context.Context, id string) (wire.NamedReference, error) {
	return one[wire.NamedReference](ctx, c, "POST", path("trash", "databases", id, "restore"), nil)
}

// PurgeTrashedDatabase removes a deleted database for good, with its backups.
func (c *Client) PurgeTrashedDatabase(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("trash", "databases", id), nil)
}

// ListTrashedBuckets returns a page of the deleted buckets.
func (c *Client) ListTrashedBuckets(ctx context.Context, o ListOptions) (Page[wire.TrashedBucket], error) {
	return list[wire.TrashedBucket](ctx, c, "/trash/buckets", o.query())
}

// TrashedBuckets iterates over the deleted buckets.
func (c *Client) TrashedBuckets(ctx context.Context) iter.Seq2[wire.TrashedBucket, error] {
	return All(ctx, c.ListTrashedBuckets)
}

// RestoreTrashedBucket brings a deleted bucket back with its objects.
func (c *Client) RestoreTrashedBucket(ctx context.Context, id string) (wire.NamedReference, error) {
	return one[wire.NamedReference](ctx, c, "POST", path("trash", "buckets", id, "restore"), nil)
}

// PurgeTrashedBucket removes a deleted bucket for good.
func (c *Client) PurgeTrashedBucket(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("trash", "buckets", id), nil)
}

// ListTrashedObjects returns a page of the deleted objects.
func (c *Client) ListTrashedObjects(ctx context.Context, o ListOptions) (Page[wire.TrashedObject], error) {
	return list[wire.TrashedObject](ctx, c, "/trash/objects", o.query())
}

// TrashedObjects iterates over the deleted objects.
func (c *Client) TrashedObjects(ctx context.Context) iter.Seq2[wire.TrashedObject, error] {
	return All(ctx, c.ListTrashedObjects)
}

// RestoreTrashedObject brings a deleted object back.
func (c *Client) RestoreTrashedObject(ctx context.Context, id string) (wire.NamedReference, error) {
	return one[wire.NamedReference](ctx, c, "POST", path("trash", "objects", id, "restore"), nil)
}

// PurgeTrashedObject removes a deleted object for good.
func (c *Client) PurgeTrashedObject(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("trash", "objects", id), nil)
}

// EmptyTrash removes everything in the trash for good.
func (c *Client) EmptyTrash(ctx context.Context) (wire.EmptiedTrash, error) {
	return one[wire.EmptiedTrash](ctx, c, "DELETE", "/trash", nil)
}
