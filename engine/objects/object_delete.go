package objects

import (
	"context"
	"errors"
	"syscall"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Deletion names an object to delete, or a version of it.
type Deletion struct {
	Bucket, Key string
	// Version is the id of the version to remove for good; "" deletes the object, whose versions stay if its bucket
	// keeps them: then a delete marker is the latest.
	Version string
	// Always makes a delete marker even if there is no object. Where one is the latest version already, none is added.
	Always bool
	// Bypass asks to remove a version in spite of governance.
	Bypass bool
	// Allow accepts what is deleted; nil accepts everything.
	Allow func(model.Object) error
}

// Deleted is what a deletion has done.
type Deleted struct {
	// Until is until when what was removed can be restored, the zero time if it cannot be restored.
	Until time.Time
	// Version is the delete marker that was made or the version that was removed, zero if the bucket never kept versions.
	Version model.Object
}

// ObjectDelete deletes an object.
func (s *Service) ObjectDelete(ctx context.Context, call *model.Call, in Deletion) (done Deleted, err error) {
	if err := model.ValidateObjectKey("key", in.Key); err != nil {
		return Deleted{}, err
	}
	err = s.withinPlan(ctx, call.Organization, func() (err error) {
		done, err = s.deleteObject(ctx, call, in)
		return err
	})
	return done, err
}

func (s *Service) deleteObject(ctx context.Context, call *model.Call, in Deletion) (Deleted, error) {
	b, release, err := s.lockObject(call, in.Bucket, in.Key)
	if err != nil {
		return Deleted{}, err
	}
	defer release()
	call.Resource = objectResource(in.Bucket, in.Key)
	old, err := s.deletable(in)
	missing := model.CodeOf(err) == model.CodeNotFound
	if err == nil && in.Allow != nil {
		err = in.Allow(old)
	}
	if err == nil && in.Version != "" {
		err = s.refuseLocked(call, old, in.Bypass)
	}
	if err != nil && (!missing || !in.Always || in.Version != "" || b.Versioning == model.VersioningOff) {
		return Deleted{}, err
	}
	if deleted, ok := errors.AsType[*DeletedError](err); ok && in.Version == "" && deleted.Marker.Versioned == (b.Versioning == model.VersioningEnabled) {
		return Deleted{Version: deleted.Marker}, nil // another marker would hide nothing more
	}
	note := s.deletion(b, in, old)
	if note.counted, err = s.reserveMarker(b, note); err != nil {
		return Deleted{}, err
	}
	note.Keep = s.keepsRemoved()
	done := Deleted{}
	if note.removes(old) {
		done.Until = s.objectTrashUntil(note.Object.LastModified)
	}
	switch {
	case in.Version != "":
		call.Note("version", in.Version)
		done.Version = old
	case note.Object.DeleteMarker:
		done.Version = note.Object
	}
	err = s.logObject(call, note, func(text []byte, note *objectNote) error { return s.core.Blobs.Log(ctx, text, note) })
	if err != nil {
		note.counted()
	}
	return done, err
}

// reserveMarker refuses a delete marker that would exceed the organization's plan: it is an object like others. Otherwise
// it reserves its place until release is called.
func (s *Service) reserveMarker(b model.Bucket, note *objectNote) (release func(), err error) {
	if !note.Object.DeleteMarker {
		return func() {}, nil
	}
	release, err = s.reserveObject(b.Organization, b, Upload{Bucket: b.ID, Key: note.Object.Key}, 0)
	if model.CodeOf(err) == model.CodeForbidden {
		err = &model.Error{Code: model.CodeForbidden, Message: model.PublicMessage(err) + "; this bucket keeps versions, so a deletion adds a delete marker: remove versions by their ids", Err: err}
	}
	return release, err
}

// deletable returns the version that a deletion is about.
func (s *Service) deletable(in Deletion) (model.Object, error) {
	if in.Version == "" {
		return s.object(in.Bucket, in.Key)
	}
	old, err := s.version(in.Bucket, in.Key, in.Version)
	if deleted, ok := errors.AsType[*DeletedError](err); ok {
		return deleted.Marker, nil
	}
	return old, err
}

// deletion returns the note of a deletion of old.
func (s *Service) deletion(b model.Bucket, in Deletion, old model.Object) *objectNote {
	now := s.core.RetentionClock()
	switch {
	case in.Version != "":
		return &objectNote{Act: actDelete, Object: model.Object{Bucket: in.Bucket, Key: in.Key, Version: old.Version, Versioned: old.Versioned, LastModified: now}}
	case b.Versioning == model.VersioningOff:
		return &objectNote{Act: actDelete, Object: model.Object{Bucket: in.Bucket, Key: in.Key, LastModified: now}}
	}
	return &objectNote{Act: actPut, Object: s.newMarker(b, in.Key, now)}
}

// newMarker returns a delete marker.
func (s *Service) newMarker(b model.Bucket, key string, at time.Time) model.Object {
	return model.Object{
		Bucket: b.ID, Key: key, Version: s.newVersion(b, key, at), Versioned: b.Versioning == model.VersioningEnabled, DeleteMarker: true, LastModified: at,
	}
}

// removes reports whether a deletion removes the bytes of old.
func (n *objectNote) removes(old model.Object) bool {
	return old.Blob != "" && (n.Act == actDelete || !n.Object.Versioned && !old.Versioned)
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
		return core.NoSpace(err, "%s: nothing was stored", core.DiskFull)
	default:
		return err
	}
}
