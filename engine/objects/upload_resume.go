package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// UploadLife is how long a resumable upload is kept after its last byte.
	UploadLife = 24 * time.Hour
	// uploadStep is after how many bytes an upload is made durable, so that no
	// more is sent again after a crash.
	uploadStep = 32 << 20
	// MaxUploads is how many an organization may have under way.
	MaxUploads = 1000
	// completeLife is for how long a client that has not heard so is told that an
	// upload is complete.
	completeLife = 5 * time.Minute
)

// NewUpload is what a resumable upload is made of.
type NewUpload struct {
	Bucket, Key, ContentType string
	Length                   int64 // in bytes
	IfAbsent                 bool
	Metadata                 string // Upload-Metadata as it was sent
}

// UploadCreate begins a resumable upload. Until it is complete or given up its
// length counts as if it were there.
func (s *Service) UploadCreate(ctx context.Context, call *model.Call, in NewUpload) (model.Upload, error) {
	whole := Upload{Bucket: in.Bucket, Key: in.Key, Length: in.Length, IfAbsent: in.IfAbsent}
	if err := whole.validate(s.core.Config.MaxObjectBytes); err != nil {
		return model.Upload{}, err
	}
	if _, err := s.bucket(call, in.Bucket); err != nil {
		return model.Upload{}, err
	}
	call.Resource = ObjectResource(in.Bucket, in.Key)
	if err := s.refuseUpload(call, whole); err != nil {
		return model.Upload{}, err
	}
	release, err := s.reserve(call.Organization, func() model.Totals { return model.Totals{Uploads: 1, UploadBytes: in.Length} })
	if err != nil {
		return model.Upload{}, err
	}
	defer release()
	part, err := s.core.Blobs.CreatePart(ctx)
	if err != nil {
		return model.Upload{}, storeError(err)
	}
	now := s.core.Clock()
	u := model.Upload{
		ID: s.core.NewID(model.ResourceUpload), Organization: call.Organization, Bucket: in.Bucket, Key: in.Key,
		ContentType: in.ContentType, IfAbsent: in.IfAbsent, Length: in.Length, Metadata: in.Metadata, Part: part,
		CreatedAt: now, ExpiresAt: now.Add(UploadLife),
	}
	if err := s.core.Change(call, func(tx *meta.Tx) error { return insertUpload(tx, u) }); err != nil {
		return model.Upload{}, errors.Join(err, s.core.Blobs.RemovePart(part))
	}
	return u, nil
}

func insertUpload(tx *meta.Tx, u model.Upload) error {
	totals, err := tx.Totals(u.Organization)
	if err != nil {
		return err
	}
	if totals.Uploads >= MaxUploads {
		return model.Errorf(model.CodeConflict, "%d resumable uploads are under way: complete some, or give them up by DELETE", MaxUploads)
	}
	return tx.Uploads().Insert(u)
}

// upload returns a resumable upload of the call's organization.
func (s *Service) upload(call *model.Call, bucket, id string) (model.Upload, error) {
	call.Resource = model.Resource{Type: model.ResourceUpload, ID: id}
	complete := s.recent.completed(id) // first: it says so until the record does
	var u model.Upload
	err := s.core.Meta.View(func(tx *meta.Tx) (err error) {
		u, err = tx.Uploads().Get(id)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) || err == nil && (u.Organization != call.Organization || u.Bucket != bucket) {
		return model.Upload{}, model.Errorf(model.CodeNotFound, "no upload %q: it was given up, or never was", id)
	}
	u.Complete = u.Complete || complete
	return u, err
}

// ClaimUpload is upload for whoever is about to change it. The caller releases
// it.
func (s *Service) ClaimUpload(call *model.Call, bucket, id, what string) (u model.Upload, release func(), err error) {
	if _, err := s.upload(call, bucket, id); err != nil {
		return u, nil, err
	}
	if release, err = s.core.Claims.Take("upload/"+id, what); err != nil {
		return u, nil, &model.Error{Code: model.CodeConflict, Message: model.PublicMessage(err), Err: ErrUploadBusy}
	}
	if u, err = s.upload(call, bucket, id); err != nil { // as it is now that it is ours
		release()
		return u, nil, err
	}
	return u, release, nil
}

// UploadGet returns a resumable upload. To its client one that is all there is
// a success: so it becomes its object first, where a crash came in between.
func (s *Service) UploadGet(ctx context.Context, call *model.Call, bucket, id string) (model.Upload, error) {
	if _, err := s.bucket(call, bucket); err != nil {
		return model.Upload{}, err
	}
	u, err := s.upload(call, bucket, id)
	if err != nil || u.Complete || u.Offset < u.Length {
		return u, err
	}
	u, release, err := s.ClaimUpload(call, bucket, id, "completing it")
	if err != nil {
		return u, err
	}
	defer release()
	return s.CompleteUpload(ctx, call, u)
}

// ErrUploadBusy means that another request sends an upload, or it is being
// completed.
var ErrUploadBusy = errors.New("in use")

// ErrUploadOffset means that an upload is not at the offset a client thought.
var ErrUploadOffset = errors.New("another offset")

// UploadAppend adds to an upload what is at offset, and makes the whole an
// object once it is complete. What was added before an error stays.
func (s *Service) UploadAppend(ctx context.Context, call *model.Call, bucket, id string, offset int64, body io.Reader) (model.Upload, error) {
	if _, err := s.bucket(call, bucket); err != nil {
		return model.Upload{}, err
	}
	u, release, err := s.ClaimUpload(call, bucket, id, "another request that sends it")
	if err != nil {
		return u, err
	}
	defer release()
	if offset != u.Offset {
		return u, &model.Error{
			Code:    model.CodeConflict,
			Message: fmt.Sprintf("Upload-Offset: the upload is at %d, not at %d", u.Offset, offset), Err: ErrUploadOffset,
		}
	}
	if u.Offset == u.Length {
		err = refuseMore(body, u.Length)
	} else {
		u, err = s.AppendPart(u, s.space.leaving(body, false))
	}
	if err != nil || u.Offset < u.Length {
		call.Note("offset", fmt.Sprint(u.Offset))
		return u, err
	}
	return s.CompleteUpload(ctx, call, u)
}

// AppendPart writes what body has, a step at a time, and returns the upload
// with what of it is durable.
func (s *Service) AppendPart(u model.Upload, body io.Reader) (model.Upload, error) {
	part, err := s.core.Blobs.ResumePart(u.Part, u.Offset, u.CRC32C)
	if err != nil {
		return u, storeError(err)
	}
	defer part.Close()
	for u.Offset < u.Length {
		n, copyErr := io.Copy(part, io.LimitReader(body, min(uploadStep, u.Length-u.Offset)))
		if u.Offset+n == u.Length && copyErr == nil {
			if err := refuseMore(body, u.Length); err != nil {
				return u, err
			}
		}
		if n > 0 {
			if u, err = s.keepPart(u, part); err != nil {
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
	return u, nil
}

func refuseMore(body io.Reader, length int64) error {
	if n, _ := io.ReadFull(body, make([]byte, 1)); n > 0 {
		return model.Invalid("body", "goes beyond the Upload-Length of %d bytes", length)
	}
	return nil
}

// keepPart makes what was written durable, and the record say so.
func (s *Service) keepPart(u model.Upload, part *blobstore.Part) (model.Upload, error) {
	size, crc, err := part.Sync()
	if err != nil {
		return u, storeError(err)
	}
	var kept model.Upload
	err = s.core.Meta.Update(func(tx *meta.Tx) (err error) {
		kept, err = tx.Uploads().Update(u.ID, func(u *model.Upload) error {
			u.Offset, u.CRC32C, u.ExpiresAt = size, crc, s.core.Clock().Add(UploadLife)
			return nil
		})
		return err
	})
	if err != nil {
		return u, core.NoRoom(err)
	}
	return kept, nil
}

// CompleteUpload makes an upload that is all there the object it was for; who
// sent it may have gone meanwhile. The call becomes one that uploads an object,
// as if it had sent the whole. An upload that is refused is over: it would have
// to be begun anew. One for which there was no room, or no time before the
// appliance ends, keeps its bytes.
func (s *Service) CompleteUpload(ctx context.Context, call *model.Call, u model.Upload) (model.Upload, error) {
	if u.Complete {
		return u, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.core.Lifetime, cancel)()
	call.Operation = model.OperationFor(model.ActionObjectUpload)
	call.Note("upload", u.ID)
	w, err := s.core.Blobs.FinishPart(ctx, u.Part, u.Length, u.CRC32C)
	if err == nil {
		defer w.Abort()
		_, err = s.publishObject(call, Upload{
			Bucket: u.Bucket, Key: u.Key, ContentType: u.ContentType, IfAbsent: u.IfAbsent, resumed: u.ID, reserved: u.Length,
		}, w)
	}
	if err == nil {
		u.Complete = true
		return u, nil
	}
	err = storeError(err)
	if s.core.Blobs.HasPart(u.Part) && !isRefusal(err) {
		return u, err
	}
	return u, errors.Join(err, s.dropUpload(u))
}

// isRefusal reports whether err is what a client is told, with nothing behind it
// that went wrong here.
func isRefusal(err error) bool {
	public, ok := errors.AsType[*model.Error](err)
	return ok && public.Err == nil
}

// noteComplete has the record of an upload say that it has become an object.
func noteComplete(tx *meta.Tx, id string, object model.Object) error {
	_, err := tx.Uploads().Update(id, func(u *model.Upload) error {
		u.Complete, u.Part, u.Metadata, u.ExpiresAt = true, "", "", object.LastModified.Add(completeLife)
		return nil
	})
	return err
}

// dropUpload removes an upload, and what there may be of its bytes, without a word
// to its organization.
func (s *Service) dropUpload(u model.Upload) error {
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return tx.Uploads().Delete(u.ID) }); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	return s.core.Blobs.RemovePart(u.Part)
}

// UploadDelete gives an upload up.
func (s *Service) UploadDelete(call *model.Call, bucket, id string) error {
	u, release, err := s.ClaimUpload(call, bucket, id, "a request that sends it")
	if err != nil {
		return err
	}
	defer release()
	return s.giveUp(call, u)
}

// giveUp removes an upload and its bytes.
func (s *Service) giveUp(call *model.Call, u model.Upload) error {
	if err := s.core.Change(call, func(tx *meta.Tx) error { return tx.Uploads().Delete(u.ID) }); err != nil {
		return err
	}
	return s.core.Blobs.RemovePart(u.Part)
}

// SweepUploads completes uploads that are all there, which only a crash or a
// full disk leaves so, gives up those that have stood still for too long or
// whose bucket is gone, and forgets those that were completed long ago.
func (s *Service) SweepUploads(ctx context.Context) error {
	due, err := s.uploadsWhere(func(tx *meta.Tx, u model.Upload) (bool, error) {
		if s.uploadHasExpired(u) || !u.Complete && u.Offset == u.Length {
			return true, nil
		}
		_, err := tx.Buckets().Get(u.Bucket)
		if errors.Is(err, meta.ErrNotFound) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, u := range due {
		if ctx.Err() != nil {
			break
		}
		call := s.core.System(model.ActionUploadExpire, u.Organization, ObjectResource(u.Bucket, u.Key))
		if err := s.sweepUpload(ctx, call, u); model.CodeOf(err) == model.CodeInternal && ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *Service) uploadHasExpired(u model.Upload) bool { return !s.core.Clock().Before(u.ExpiresAt) }

func (s *Service) sweepUpload(ctx context.Context, call *model.Call, u model.Upload) error {
	u, release, err := s.ClaimUpload(call, u.Bucket, u.ID, "a clean-up")
	if err != nil {
		return err
	}
	defer release()
	_, err = s.bucket(call, u.Bucket)
	switch over := s.uploadHasExpired(u) || model.CodeOf(err) == model.CodeNotFound; {
	case u.Complete && over:
		return s.dropUpload(u)
	case over:
		return s.giveUp(call, u)
	case !u.Complete && u.Offset == u.Length:
		_, err := s.CompleteUpload(ctx, call, u)
		return err
	}
	return nil // it has gone on meanwhile
}

// uploadsWhere returns the uploads that are wanted.
func (s *Service) uploadsWhere(want func(*meta.Tx, model.Upload) (bool, error)) (uploads []model.Upload, err error) {
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error { // which says of each whether it is complete by now
		return tx.Uploads().All(func(u model.Upload) error {
			wanted, err := want(tx, u)
			if wanted {
				uploads = append(uploads, u)
			}
			return err
		})
	})
	return uploads, err
}

// SettleUploads removes, at start, parts without an upload and uploads without
// their part: a crash came between the two.
func (s *Service) SettleUploads() error {
	uploads, err := s.uploadsWhere(func(_ *meta.Tx, u model.Upload) (bool, error) { return !u.Complete, nil })
	if err != nil {
		return err
	}
	parts, err := s.core.Blobs.Parts()
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
		s.core.Log.Warn("an upload has lost its bytes and is given up", "upload", u.ID, "bucket", u.Bucket, "key", u.Key)
		errs = append(errs, s.dropUpload(u))
	}
	for part := range stray {
		errs = append(errs, s.core.Blobs.RemovePart(part))
	}
	return errors.Join(errs...)
}
