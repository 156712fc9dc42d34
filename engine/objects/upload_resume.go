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
	// uploadStep is the number of bytes between syncs of an upload: a client resends at most so many after a crash.
	uploadStep = 32 << 20
	// MaxUploads is the maximum number of unfinished uploads of an organization.
	MaxUploads = 1000
	// completeLife is how long the record of a complete upload is kept, for clients that missed the response.
	completeLife = 5 * time.Minute
)

// NewUpload holds the properties of a resumable upload to create.
type NewUpload struct {
	Bucket, Key, ContentType string
	Attributes               *model.Attributes
	Tags                     map[string]string
	Length                   int64 // in bytes
	IfAbsent                 bool
	Metadata                 string // the Upload-Metadata header, unchanged
}

// UploadCreate begins a resumable upload. Its whole length counts toward the
// organization's totals until it is complete or aborted.
func (s *Service) UploadCreate(ctx context.Context, call *model.Call, in NewUpload) (model.Upload, error) {
	whole := Upload{Bucket: in.Bucket, Key: in.Key, Length: in.Length, IfAbsent: in.IfAbsent}
	if err := whole.validate(s.core.Config.MaxObjectBytes); err != nil {
		return model.Upload{}, err
	}
	b, err := s.bucket(call, in.Bucket)
	if err != nil {
		return model.Upload{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	if err := s.refuseUpload(ctx, call, b, whole, in.Length); err != nil {
		return model.Upload{}, err
	}
	release, err := s.reserveTotals(ctx, call, true, model.Totals{Uploads: 1, UploadBytes: in.Length})
	if err != nil {
		return model.Upload{}, err
	}
	defer release()
	part, err := s.core.Blobs.CreatePart(ctx)
	if err != nil {
		return model.Upload{}, storeError(err)
	}
	u := model.Upload{
		ID: s.core.NewID(model.ResourceUpload), Organization: call.Organization, Bucket: in.Bucket, Key: in.Key,
		ContentType: in.ContentType, Attributes: in.Attributes, Tags: in.Tags, IfAbsent: in.IfAbsent, Length: in.Length,
		Metadata: in.Metadata, Part: part,
		ExpiresAt: s.core.RetentionClock().Add(UploadLife),
	}
	if err := s.core.Change(call, func(tx *meta.Tx) error { return insertUpload(tx, u) }); err != nil {
		return model.Upload{}, errors.Join(err, s.core.Blobs.RemovePart(part))
	}
	return u, nil
}

func insertUpload(tx *meta.Tx, u model.Upload) error {
	if err := checkUploadLimit(tx, u.Organization); err != nil {
		return err
	}
	return tx.Uploads().Insert(u)
}

// upload returns a resumable upload of the call's organization.
func (s *Service) upload(call *model.Call, bucket, id string) (model.Upload, error) {
	call.Resource = model.Resource{Type: model.ResourceUpload, ID: id}
	complete := s.recent.completed(id) // before reading the record, which is written later
	u, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Upload, error) { return tx.Uploads().Get(id) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && (u.Organization != call.Organization || u.Bucket != bucket) {
		return model.Upload{}, model.Errorf(model.CodeNotFound, "no upload %q: it was deleted, has expired or never existed", id)
	}
	u.Complete = u.Complete || complete
	return u, err
}

// ClaimUpload returns an upload and claims it for a change. The caller releases the claim.
func (s *Service) ClaimUpload(call *model.Call, bucket, id, what string) (u model.Upload, release func(), err error) {
	if _, err := s.upload(call, bucket, id); err != nil {
		return u, nil, err
	}
	if release, err = s.core.Claims.Take("upload/"+id, what); err != nil {
		return u, nil, &model.Error{Code: model.CodeConflict, Message: model.PublicMessage(err), Err: ErrUploadBusy}
	}
	return s.claimedUpload(call, bucket, id, release)
}

// claimedUpload returns the current state of an upload that is claimed, or releases the claim.
func (s *Service) claimedUpload(call *model.Call, bucket, id string, claim func()) (u model.Upload, release func(), err error) {
	if u, err = s.upload(call, bucket, id); err != nil {
		claim()
		return u, nil, err
	}
	return u, claim, nil
}

// UploadGet returns a resumable upload. Its client takes an upload with all its bytes for a success, so UploadGet first
// completes one that a crash interrupted.
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

// ErrUploadBusy means that another request is sending or completing the upload.
var ErrUploadBusy = errors.New("in use")

// errUploadOffset means that the client's offset differs from the upload's.
var errUploadOffset = errors.New("another offset")

// UploadAppend appends the body to an upload at offset and completes the upload once it has all its bytes. Bytes
// appended before an error are kept.
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
			Message: fmt.Sprintf("Upload-Offset: the upload is at %d, not at %d", u.Offset, offset), Err: errUploadOffset,
		}
	}
	if u.Offset == u.Length {
		err = refuseMore(body, u.Length)
	} else {
		u, err = s.AppendPart(call, u, s.space.withinReserve(body, false))
	}
	if err != nil || u.Offset < u.Length {
		call.Note("offset", fmt.Sprint(u.Offset))
		return u, err
	}
	return s.CompleteUpload(ctx, call, u)
}

// AppendPart writes the body in steps and returns the upload with its durable
// offset.
func (s *Service) AppendPart(call *model.Call, u model.Upload, body io.Reader) (model.Upload, error) {
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
			if u, err = s.keepPart(call, u, part); err != nil {
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

// keepPart syncs the bytes written so far and records the new offset, unless the caller's authority has ended.
func (s *Service) keepPart(call *model.Call, u model.Upload, part *blobstore.Part) (model.Upload, error) {
	size, crc, err := part.Sync()
	if err != nil {
		return u, storeError(err)
	}
	var kept model.Upload
	err = s.core.WithAuthority(call, func() error {
		return s.core.Meta.Update(func(tx *meta.Tx) (err error) {
			kept, err = tx.Uploads().Update(u.ID, func(u *model.Upload) error {
				u.Offset, u.CRC32C, u.ExpiresAt = size, crc, s.core.Extended(u.ExpiresAt, UploadLife)
				return nil
			})
			return err
		})
	})
	if err != nil {
		return u, core.ExplainDiskFull(err)
	}
	return kept, nil
}

// CompleteUpload turns an upload with all its bytes into its object, even if the client has disconnected. The call
// becomes the upload of an object, as if it had sent all the bytes. A refused upload ends, and the client has to start
// over. An upload that fails for lack of free space, because the appliance stops or accepts no more changes, or because the
// caller may not act any more, keeps its bytes.
func (s *Service) CompleteUpload(ctx context.Context, call *model.Call, u model.Upload) (model.Upload, error) {
	if u.Complete {
		return u, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(s.core.Lifetime, cancel)()
	call.Operation = model.OperationFor(model.ActionObjectUpload)
	call.Note("upload", u.ID)
	w, err := s.core.Blobs.FinishPart(ctx, u.Part, []blobstore.Section{{Size: u.Length, CRC32C: u.CRC32C}}, nil)
	if err == nil {
		defer w.Abort()
		_, err = s.publishObject(ctx, call, Upload{
			Bucket: u.Bucket, Key: u.Key, ContentType: u.ContentType, Tags: u.Tags, IfAbsent: u.IfAbsent,
			Describe: func(o *model.Object) { o.Attributes = u.Attributes }, resumed: u.ID, reserved: u.Length,
		}, w)
	}
	if err == nil {
		u.Complete = true
		return u, nil
	}
	whole := !errors.Is(err, blobstore.ErrDamaged) && s.core.Blobs.HasPart(u.Part)
	err = storeError(err)
	switch {
	case whole && s.core.CheckAuthority(call) != nil:
		return u, errors.Join(err, s.leaveUpload(u))
	case whole && (!isRefusal(err) || model.CodeOf(err) == model.CodeReadOnly):
		return u, err
	}
	return u, errors.Join(err, s.dropUpload(u))
}

// leaveUpload leaves an upload whose caller may not act any more to other callers. The appliance does not complete it.
func (s *Service) leaveUpload(u model.Upload) error {
	err := s.core.Meta.Update(func(tx *meta.Tx) error {
		return tx.Uploads().Change(u.ID, func(u *model.Upload) { u.Left = true })
	})
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	return err
}

// isRefusal reports whether err is purely a client error, without an internal cause.
func isRefusal(err error) bool {
	public, ok := errors.AsType[*model.Error](err)
	return ok && public.Err == nil
}

// noteComplete marks the record of an upload as complete.
func noteComplete(tx *meta.Tx, id string, object model.Object) error {
	return tx.Uploads().Change(id, func(u *model.Upload) {
		u.Complete, u.Part, u.Metadata, u.Attributes, u.Tags = true, "", "", nil, nil
		u.ExpiresAt = object.LastModified.Add(completeLife)
	})
}

// dropUpload removes an upload and its bytes without an audit entry.
func (s *Service) dropUpload(u model.Upload) error {
	if err := s.core.Meta.Update(func(tx *meta.Tx) error { return tx.Uploads().Delete(u.ID) }); err != nil && !errors.Is(err, meta.ErrNotFound) {
		return err
	}
	return s.core.Blobs.RemovePart(u.Part)
}

// UploadDelete aborts an upload.
func (s *Service) UploadDelete(call *model.Call, bucket, id string) error {
	u, release, err := s.ClaimUpload(call, bucket, id, "a request that sends it")
	if err != nil {
		return err
	}
	defer release()
	return s.abort(call, u)
}

// abort removes an upload and its bytes.
func (s *Service) abort(call *model.Call, u model.Upload) error {
	if err := s.core.Change(call, func(tx *meta.Tx) error { return tx.Uploads().Delete(u.ID) }); err != nil {
		return err
	}
	return s.core.Blobs.RemovePart(u.Part)
}

// SweepUploads completes uploads that have all their bytes, which only a crash or a full disk leaves behind, unless they were
// left to other callers; it aborts uploads that are idle for too long or whose bucket is gone, and removes the records of old complete uploads.
func (s *Service) SweepUploads(ctx context.Context) error {
	var ahead []string
	due, err := s.uploadsWhere(func(tx *meta.Tx, u model.Upload) (bool, error) {
		if s.core.WasAhead(u.ExpiresAt, UploadLife) {
			ahead = append(ahead, u.ID)
		}
		if s.uploadHasExpired(u) || isPending(u) {
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
	errs := []error{core.Redate(s.core, (*meta.Tx).Uploads, ahead, func(u *model.Upload) *time.Time { return &u.ExpiresAt }, UploadLife)}
	for _, u := range due {
		if ctx.Err() != nil {
			break
		}
		call := s.core.System(model.ActionUploadExpire, u.Organization, objectResource(u.Bucket, u.Key))
		if err := s.sweepUpload(ctx, call, u); model.CodeOf(err) == model.CodeInternal && ctx.Err() == nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, s.sweepMultiparts(ctx))...)
}

// isPending reports whether the appliance has to complete an upload.
func isPending(u model.Upload) bool { return !u.Complete && !u.Left && u.Offset == u.Length }

// uploadHasExpired reports whether an upload may be removed for its age.
func (s *Service) uploadHasExpired(u model.Upload) bool { return s.core.MayRemove(u.ExpiresAt) }

func (s *Service) sweepUpload(ctx context.Context, call *model.Call, u model.Upload) error {
	claim, err := s.core.Claims.TakeBriefly("upload/"+u.ID, "a clean-up")
	if err != nil {
		return err
	}
	u, release, err := s.claimedUpload(call, u.Bucket, u.ID, claim)
	if err != nil {
		return err
	}
	defer release()
	_, err = s.bucket(call, u.Bucket)
	switch over := s.uploadHasExpired(u) || model.CodeOf(err) == model.CodeNotFound; {
	case u.Complete && over:
		return s.dropUpload(u)
	case over:
		return s.abort(call, u)
	case isPending(u):
		_, err := s.CompleteUpload(ctx, call, u)
		return err
	}
	return nil // it has received more bytes since
}

// uploadsWhere returns the uploads for which want returns true.
func (s *Service) uploadsWhere(want func(*meta.Tx, model.Upload) (bool, error)) (uploads []model.Upload, err error) {
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error { // flushed, so that completed uploads are marked as such
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

// RecoverUploads removes, at start, parts without an upload and uploads without their part, which a crash in between
// leaves behind. With older metadata it quarantines the parts instead.
func (s *Service) RecoverUploads(older bool) error {
	uploads, err := s.uploadsWhere(func(_ *meta.Tx, u model.Upload) (bool, error) { return !u.Complete, nil })
	if err != nil {
		return err
	}
	parts, err := s.core.Blobs.Parts()
	if err != nil {
		return err
	}
	orphans := map[string]bool{}
	for _, part := range parts {
		orphans[part] = true
	}
	if err := s.keepMultiparts(orphans); err != nil {
		return err
	}
	var errs []error
	for _, u := range uploads {
		if orphans[u.Part] {
			delete(orphans, u.Part)
			continue
		}
		s.core.Log.Warn("an upload has lost its bytes and is deleted", "upload", u.ID, "bucket", u.Bucket, "key", u.Key)
		errs = append(errs, s.dropUpload(u))
	}
	for part := range orphans {
		errs = append(errs, s.clearPart(part, older))
	}
	return errors.Join(errs...)
}

// clearPart removes a part without an upload; with older metadata it quarantines it.
func (s *Service) clearPart(part string, older bool) error {
	if !older {
		return s.core.Blobs.RemovePart(part)
	}
	to, err := s.quarantine(quarantinedUploads, part)
	if err != nil {
		return err
	}
	s.core.Log.Warn("quarantining a part that belongs to no upload", "part", part, "to", to)
	return s.core.Blobs.QuarantinePart(part, to)
}
