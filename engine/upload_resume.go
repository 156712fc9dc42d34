package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// UploadLife is how long a resumable upload is kept after its last byte.
	UploadLife = 24 * time.Hour
	// uploadStep is after how many bytes an upload is made durable, so that no
	// more is sent again after a crash.
	uploadStep = 32 << 20
)

// NewUpload is what a resumable upload is made of.
type NewUpload struct {
	Bucket, Key, ContentType string
	Length                   int64 // in bytes
	IfAbsent                 bool
}

// UploadCreate begins a resumable upload.
func (e *Engine) UploadCreate(ctx context.Context, call *model.Call, in NewUpload) (model.Upload, error) {
	whole := Upload{Bucket: in.Bucket, Key: in.Key, Length: in.Length, IfAbsent: in.IfAbsent}
	if err := whole.validate(e.cfg.MaxObjectBytes); err != nil {
		return model.Upload{}, err
	}
	if _, err := e.bucket(call, in.Bucket); err != nil {
		return model.Upload{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	if err := e.refuseUpload(call, whole); err != nil {
		return model.Upload{}, err
	}
	part, err := e.blobs.CreatePart(ctx)
	if err != nil {
		return model.Upload{}, storeError(err)
	}
	now := e.clock()
	u := model.Upload{
		ID: e.newID(model.ResourceUpload), Organization: call.Organization, Bucket: in.Bucket, Key: in.Key,
		ContentType: in.ContentType, IfAbsent: in.IfAbsent, Length: in.Length, Part: part,
		CreatedAt: now, ExpiresAt: now.Add(UploadLife),
	}
	if err := e.change(call, func(tx *meta.Tx) error { return tx.Uploads().Insert(u) }); err != nil {
		return model.Upload{}, errors.Join(err, e.blobs.RemovePart(part))
	}
	return u, nil
}

// UploadGet returns a resumable upload that is not complete.
func (e *Engine) UploadGet(call *model.Call, bucket, id string) (model.Upload, error) {
	call.Resource = model.Resource{Type: model.ResourceUpload, ID: id}
	var u model.Upload
	err := e.meta.View(func(tx *meta.Tx) (err error) {
		u, err = tx.Uploads().Get(id)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) || err == nil && (u.Organization != call.Organization || u.Bucket != bucket) {
		return model.Upload{}, model.Errorf(model.CodeNotFound, "no upload %q: it is complete, was given up, or never was", id)
	}
	return u, err
}

// ErrUploadOffset means that an upload is not at the offset a client thought.
var ErrUploadOffset = errors.New("another offset")

// UploadAppend adds to an upload what is at offset, and makes the whole an
// object once it is complete. What was added before an error stays.
func (e *Engine) UploadAppend(ctx context.Context, call *model.Call, bucket, id string, offset int64, body io.Reader) (model.Upload, error) {
	u, err := e.UploadGet(call, bucket, id)
	if err != nil {
		return u, err
	}
	release, err := e.claims.take(id, "another request that sends it")
	if err != nil {
		return u, err
	}
	defer release()
	if u, err = e.UploadGet(call, bucket, id); err != nil { // it may have been completed meanwhile
		return u, err
	}
	if offset != u.Offset {
		return u, &model.Error{
			Code:    model.CodeConflict,
			Message: fmt.Sprintf("Upload-Offset: the upload is at %d, not at %d", u.Offset, offset), Err: ErrUploadOffset,
		}
	}
	if u, err = e.appendPart(u, body); err != nil || u.Offset < u.Length {
		call.Note("offset", fmt.Sprint(u.Offset))
		return u, err
	}
	return u, e.completeUpload(ctx, call, u)
}

// appendPart writes what body has, a step at a time, and returns the upload
// with what of it is durable.
func (e *Engine) appendPart(u model.Upload, body io.Reader) (model.Upload, error) {
	part, err := e.blobs.ResumePart(u.Part, u.Offset, u.CRC32C)
	if err != nil {
		return u, storeError(err)
	}
	defer part.Close()
	for u.Offset < u.Length {
		n, copyErr := io.Copy(part, io.LimitReader(body, min(uploadStep, u.Length-u.Offset)))
		if n > 0 {
			if u, err = e.keepPart(u, part); err != nil {
				return u, err
			}
		}
		if copyErr != nil {
			return u, uploadError(copyErr)
		}
		if n == 0 {
			return u, nil
		}
	}
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		return u, model.Invalid("body", "goes beyond the Upload-Length of %d bytes", u.Length)
	}
	return u, nil
}

// keepPart makes what was written durable, and the record say so.
func (e *Engine) keepPart(u model.Upload, part *blobstore.Part) (model.Upload, error) {
	size, crc, err := part.Sync()
	if err != nil {
		return u, storeError(err)
	}
	var kept model.Upload
	err = e.meta.Update(func(tx *meta.Tx) (err error) {
		kept, err = tx.Uploads().Update(u.ID, func(u *model.Upload) error {
			u.Offset, u.CRC32C, u.ExpiresAt = size, crc, e.clock().Add(UploadLife)
			return nil
		})
		return err
	})
	if err != nil {
		return u, noRoom(err)
	}
	return kept, nil
}

// completeUpload makes an upload the object it was for. The call becomes one
// that uploads an object, as if it had sent the whole.
func (e *Engine) completeUpload(ctx context.Context, call *model.Call, u model.Upload) error {
	w, err := e.blobs.FinishPart(ctx, u.Part, u.Length, u.CRC32C)
	if err != nil {
		return storeError(err)
	}
	defer w.Abort()
	call.Operation = model.OperationFor(model.ActionObjectUpload)
	call.Note("upload", u.ID)
	_, err = e.publishObject(call, Upload{Bucket: u.Bucket, Key: u.Key, ContentType: u.ContentType, IfAbsent: u.IfAbsent, resumed: u.ID}, w)
	return err
}

// UploadDelete gives an upload up.
func (e *Engine) UploadDelete(call *model.Call, bucket, id string) error {
	release, err := e.claims.take(id, "a request that sends it")
	if err != nil {
		return err
	}
	defer release()
	u, err := e.UploadGet(call, bucket, id)
	if err != nil {
		return err
	}
	if err := e.change(call, func(tx *meta.Tx) error { return tx.Uploads().Delete(id) }); err != nil {
		return err
	}
	return e.blobs.RemovePart(u.Part)
}

// expireUploads gives up uploads that have stood still for too long, and those
// whose bytes are gone.
func (e *Engine) expireUploads() error {
	uploads, err := e.allUploads()
	if err != nil {
		return err
	}
	var errs []error
	for _, u := range uploads {
		if e.clock().Before(u.ExpiresAt) {
			continue
		}
		call := e.system(model.ActionUploadExpire, u.Organization, objectResource(u.Bucket, u.Key))
		if err := e.UploadDelete(call, u.Bucket, u.ID); model.CodeOf(err) == model.CodeInternal {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) allUploads() (uploads []model.Upload, err error) {
	err = e.meta.View(func(tx *meta.Tx) error {
		return tx.Uploads().All(func(u model.Upload) error {
			uploads = append(uploads, u)
			return nil
		})
	})
	return uploads, err
}

// settleUploads removes, at start, parts without an upload and uploads without
// their part: a crash came between the two.
func (e *Engine) settleUploads() error {
	uploads, err := e.allUploads()
	if err != nil {
		return err
	}
	parts, err := e.blobs.Parts()
	if err != nil {
		return err
	}
	stray := map[string]bool{}
	for _, part := range parts {
		stray[part] = true
	}
	var errs []error
	for _, u := range uploads {
		if stray[u.Part] {
			delete(stray, u.Part)
			continue
		}
		e.log.Warn("an upload has lost its bytes and is given up", "upload", u.ID, "bucket", u.Bucket, "key", u.Key)
		errs = append(errs, e.meta.Update(func(tx *meta.Tx) error { return tx.Uploads().Delete(u.ID) }))
	}
	for part := range stray {
		errs = append(errs, e.blobs.RemovePart(part))
	}
	return errors.Join(errs...)
}
