package client

import (
	"context"
	"iter"
	"net/url"
	"time"

	"holdfast/server/api/wire"
)

// TrashOptions select deleted databases or buckets; an empty field selects all.
type TrashOptions struct {
	ListOptions
	Project                     string // id
	Name                        string
	DeletedAfter, DeletedBefore time.Time
}

func (o TrashOptions) query() url.Values {
	query := setTexts(o.ListOptions.query(), map[string]string{"project": o.Project, "name": o.Name})
	return setTimes(query, map[string]time.Time{"deleted_after": o.DeletedAfter, "deleted_before": o.DeletedBefore})
}

// ListTrashedDatabases returns a page of the deleted databases.
func (c *Client) ListTrashedDatabases(ctx context.Context, o TrashOptions) (Page[wire.TrashedDatabase], error) {
	return list[wire.TrashedDatabase](ctx, c, "/trash/databases", o.query())
}

// TrashedDatabases iterates over the deleted databases that o selects.
func (c *Client) TrashedDatabases(ctx context.Context, o TrashOptions) iter.Seq2[wire.TrashedDatabase, error] {
	return all(ctx, o, func(o *TrashOptions) *ListOptions { return &o.ListOptions }, c.ListTrashedDatabases)
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
func (c *Client) ListTrashedBuckets(ctx context.Context, o TrashOptions) (Page[wire.TrashedBucket], error) {
	return list[wire.TrashedBucket](ctx, c, "/trash/buckets", o.query())
}

// TrashedBuckets iterates over the deleted buckets that o selects.
func (c *Client) TrashedBuckets(ctx context.Context, o TrashOptions) iter.Seq2[wire.TrashedBucket, error] {
	return all(ctx, o, func(o *TrashOptions) *ListOptions { return &o.ListOptions }, c.ListTrashedBuckets)
}

// RestoreTrashedBucket brings a deleted bucket back with its objects.
func (c *Client) RestoreTrashedBucket(ctx context.Context, id string) (wire.RestoredBucket, error) {
	return one[wire.RestoredBucket](ctx, c, "POST", path("trash", "buckets", id, "restore"), nil)
}

// PurgeTrashedBucket removes a deleted bucket for good.
func (c *Client) PurgeTrashedBucket(ctx context.Context, id string) (wire.DeletedRecord, error) {
	return one[wire.DeletedRecord](ctx, c, "DELETE", path("trash", "buckets", id), nil)
}

// TrashObjectOptions select deleted objects; an empty field selects all.
type TrashObjectOptions struct {
	ListOptions
	BucketID                    string
	Prefix                      string // of the key
	DeletedAfter, DeletedBefore time.Time
}

// ListTrashedObjects returns a page of the deleted objects.
func (c *Client) ListTrashedObjects(ctx context.Context, o TrashObjectOptions) (Page[wire.TrashedObject], error) {
	query := setTexts(o.query(), map[string]string{"bucket_id": o.BucketID, "prefix": o.Prefix})
	setTimes(query, map[string]time.Time{"deleted_after": o.DeletedAfter, "deleted_before": o.DeletedBefore})
	return list[wire.TrashedObject](ctx, c, "/trash/objects", query)
}

// TrashedObjects iterates over the deleted objects that o selects.
func (c *Client) TrashedObjects(ctx context.Context, o TrashObjectOptions) iter.Seq2[wire.TrashedObject, error] {
	return all(ctx, o, func(o *TrashObjectOptions) *ListOptions { return &o.ListOptions }, c.ListTrashedObjects)
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
