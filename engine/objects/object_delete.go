package objects

import (
	"context"
	"errors"
	"syscall"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/model"
)

// ObjectDelete deletes an object. It returns until when the operator can restore it, the zero time if it cannot be
// restored.
func (s *Service) ObjectDelete(ctx context.Context, call *model.Call, bucket, key string) (until time.Time, err error) {
	return s.ObjectDeleteIf(ctx, call, bucket, key, func(model.Object) error { return nil })
}

// ObjectDeleteIf is ObjectDelete if allow accepts the object.
func (s *Service) ObjectDeleteIf(ctx context.Context, call *model.Call, bucket, key string, allow func(model.Object) error) (until time.Time, err error) {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return until, err
	}
	release := s.LockObject(bucket, key)
	defer release()
	if _, err := s.bucket(call, bucket); err != nil {
		return until, err
	}
	call.Resource = objectResource(bucket, key)
	object, err := s.object(bucket, key)
	if err == nil {
		err = allow(object)
	}
	if err != nil {
		return until, err
	}
	now := s.core.Clock()
	until = s.objectTrashUntil(now)
	note := &objectNote{Act: actDelete, Object: model.Object{Bucket: bucket, Key: key, LastModified: now}, Keep: !until.IsZero()}
	return until, s.logObject(call, note, func(text []byte, note *objectNote) error {
		return s.core.Blobs.Log(ctx, text, note)
	})
}

// storeError turns an error of the blob store into one for the client.
func storeError(err error) error {
	switch {
	case errors.Is(err, blobstore.ErrReadOnly):
		return &model.Error{
			Code:    model.CodeForbidden,
			Message: "storage is read-only since a write to disk failed; the operator must check the disk and restart holdfast",
			Err:     err,
		}
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return &model.Error{
			Code:    model.CodeForbidden,
			Message: "the data directory cannot be written to: nothing was stored; the operator must check the disk", Err: err,
		}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &model.Error{Code: model.CodeForbidden, Message: "the disk is full: nothing was stored", Err: err}
	default:
		return err
	}
}
