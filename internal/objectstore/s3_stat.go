package objectstore

import (
	"cmp"
	"context"
	"time"

	"github.com/minio/minio-go/v7"
)

// Stat implements Store.
func (b *bucket) Stat(ctx context.Context, key string) (Info, error) {
	if err := b.check("stat", key); err != nil {
		return Info{}, err
	}
	var info Info
	err := b.do(ctx, "stat", key, func(ctx context.Context) error {
		found, err := b.head(ctx, key)
		info = describeObject(key, found)
		return err
	})
	return info, err
}

// head requests what the store knows of an object. The answer to a HEAD has no body,
// so a missing bucket looks like a missing object until it is asked for.
func (b *bucket) head(ctx context.Context, key string) (minio.ObjectInfo, error) {
	info, err := b.core.StatObject(ctx, b.name, b.object(key), minio.StatObjectOptions{})
	if answered(err).StatusCode != 404 {
		return info, err
	}
	if exists, err := b.core.BucketExists(ctx, b.name); err != nil || exists {
		return info, cmp.Or(err, ErrNotFound)
	}
	return info, minio.ErrorResponse{StatusCode: 404, Code: minio.NoSuchBucket, Message: "The bucket does not exist."}
}

func describeObject(key string, o minio.ObjectInfo) Info {
	info := Info{Key: key, Size: o.Size, Modified: o.LastModified}
	if until, err := time.Parse(time.RFC3339, o.Metadata.Get("X-Amz-Object-Lock-Retain-Until-Date")); err == nil {
		info.RetainUntil, info.Mode = until, Mode(o.Metadata.Get("X-Amz-Object-Lock-Mode"))
	}
	return info
}
