package engine

import (
	"errors"
	"syscall"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectDelete removes an object.
func (e *Engine) ObjectDelete(call *model.Call, bucket, key string) error {
	if err := model.ValidateObjectKey("key", key); err != nil {
		return err
	}
	if _, err := e.bucket(call, bucket); err != nil {
		return err
	}
	call.Resource = objectResource(bucket, key)
	err := e.change(call, func(tx *meta.Tx) error {
		if _, err := bucketOf(tx, call.Organization, bucket); err != nil {
			return err
		}
		err := tx.DeleteObject(bucket, key, e.clock())
		if errors.Is(err, meta.ErrNotFound) {
			return noObject(key)
		}
		return err
	})
	if err != nil {
		return err
	}
	e.unlinkSoon()
	return nil
}

// storeError says in words what keeps the blob store from writing.
func storeError(err error) error {
	switch {
	case errors.Is(err, blobstore.ErrReadOnly):
		return &model.Error{
			Code:    model.CodeForbidden,
			Message: "storage is read-only since a write to disk failed; the operator must check the disk and restart holdfast",
			Err:     err,
		}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &model.Error{Code: model.CodeForbidden, Message: "the disk is full: nothing was stored", Err: err}
	default:
		return err
	}
}
