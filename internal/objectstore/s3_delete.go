package objectstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/minio/minio-go/v7"
)

// Delete implements Store.
func (b *bucket) Delete(ctx context.Context, key string) error {
	if err := b.check("delete", key); err != nil {
		return err
	}
	return b.do(ctx, "delete", key, func(ctx context.Context) error {
		versions, err := b.versions(ctx, key)
		if err != nil {
			return err
		}
		for _, v := range versions {
			if err := b.remove(ctx, key, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// versions returns the ids of the versions of an object, delete markers included. A
// store that does not know versions has the one without an id.
func (b *bucket) versions(ctx context.Context, key string) ([]string, error) {
	name, ids := b.object(key), []string(nil)
	for o := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{WithVersions: true, Prefix: name, Recursive: true}) {
		if o.Err != nil {
			if r := answered(o.Err); r.StatusCode == 501 || r.Code == "NotImplemented" || r.Code == "MethodNotAllowed" {
				return []string{""}, nil
			}
			return nil, o.Err
		}
		if o.Key != name { // others of the same beginning follow
			break
		}
		ids = append(ids, o.VersionID)
	}
	return ids, ctx.Err()
}

// Hidden implements Store.
func (b *bucket) Hidden(ctx context.Context, prefix string) (found bool, err error) {
	if err := listable(prefix); err != nil {
		return false, b.unsupported("list the versions", prefix, err)
	}
	err = b.do(ctx, "list the versions", prefix, func(ctx context.Context) error {
		found, err = b.hidden(ctx, prefix)
		return err
	})
	return found, unlessRefused(err)
}

// hidden relies on the order of the list: by key, the newest version first.
func (b *bucket) hidden(ctx context.Context, prefix string) (bool, error) {
	deleted := "" // the object of the newest version, if that is a delete marker
	for o := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{WithVersions: true, Prefix: b.object(prefix), Recursive: true}) {
		switch {
		case o.Err != nil:
			return false, o.Err
		case o.IsLatest && o.IsDeleteMarker:
			deleted = o.Key
		case !o.IsDeleteMarker && o.Key == deleted:
			return true, nil
		}
	}
	return false, ctx.Err()
}

// remove deletes one version. Stores deny the deletion of a locked one in the same
// words as any other that is denied, so the reason is looked up.
func (b *bucket) remove(ctx context.Context, key, version string) error {
	err := b.core.RemoveObject(ctx, b.name, b.object(key), minio.RemoveObjectOptions{VersionID: version})
	switch r := answered(err); {
	case err == nil, r.StatusCode == 404 && r.Code != minio.NoSuchBucket:
		return nil
	case r.StatusCode != 403 && r.StatusCode != 400 && r.StatusCode != 405:
		return err
	}
	if until, _, lockErr := b.retention(ctx, key, version); lockErr == nil && until.After(time.Now()) {
		return fmt.Errorf("%w: until %s", ErrLocked, until.UTC().Format(time.RFC3339))
	}
	return err
}

// retention returns the lock of a version, of the latest if version is empty; without
// one the time is zero. It asks for the headers of the object: the answer to a
// request for the retention itself is not the same everywhere.
func (b *bucket) retention(ctx context.Context, key, version string) (time.Time, Mode, error) {
	o, err := b.core.StatObject(ctx, b.name, b.object(key), minio.StatObjectOptions{VersionID: version})
	info := describeObject(key, o)
	return info.RetainUntil, info.Mode, err
}

// Retain implements Store.
func (b *bucket) Retain(ctx context.Context, key string, r Retention) error {
	if err := b.check("retain", key); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return b.unsupported("retain", key, err)
	}
	return b.do(ctx, "retain", key, func(ctx context.Context) error { return b.retain(ctx, key, r) })
}

// retain looks first, because some stores let whoever may lock also shorten a lock.
func (b *bucket) retain(ctx context.Context, key string, r Retention) error {
	o, err := b.head(ctx, key)
	if err != nil {
		return err
	}
	held := describeObject(key, o)
	if held.Mode == Compliance {
		r.Mode = Compliance
	}
	if !held.RetainUntil.Before(r.Until.Truncate(time.Second)) {
		if held.Mode == r.Mode {
			return nil
		}
		r.Until = held.RetainUntil
	}
	mode := minio.RetentionMode(r.Mode)
	err = b.core.PutObjectRetention(ctx, b.name, b.object(key), minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &r.Until})
	return lockError(err)
}

// lockError turns what stores say of buckets without Object Lock, each in its own
// words, into ErrUnsupported.
func lockError(err error) error {
	switch r := answered(err); r.Code {
	case "InvalidRequest", "InvalidBucketObjectLockConfiguration", "ObjectLockConfigurationNotFoundError", "NotImplemented":
		return errors.Join(ErrUnsupported, fmt.Errorf("the bucket has no Object Lock: %w", err))
	}
	return err
}
