package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"holdfast/blobstore"
	"holdfast/engine/model"
)

// ErrAway means that an object's bytes are in the off-site copy only, and could not be fetched.
var ErrAway = blobstore.ErrAway

// OtherCopyError means that bytes are only in a copy that is not the configured one, so that trying again does not help.
type OtherCopyError struct{ Repository string }

// Error implements error.
func (e *OtherCopyError) Error() string {
	return fmt.Sprintf("large objects are only in the copy %s, which is not in the store that --offsite names", e.Repository)
}

// awayRetry is when a client may try again to read what is away, and otherCopyRetry when the operator must do something first:
// our own client gives up then.
const (
	awayRetry      = 30 * time.Second
	otherCopyRetry = time.Hour
)

// FetchWith sets where bytes come from that are not on this disk. fetch returns an error that wraps blobstore.ErrDamaged if
// they are lost for good. It must be called before Open.
func (s *Service) FetchWith(fetch Fetch) { s.fetchAway = fetch }

// Fetch opens n bytes of a blob from an offset on.
type Fetch func(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error)

// CopyWith sets what tells whether the off-site copy is known to have the bytes of a blob that is a file. It must be called
// before the first upload.
func (s *Service) CopyWith(has func(blobstore.Ref) bool) { s.copied = has }

// maxReplaced bounds the objects in a chain of replaced ones, in the record of the newest.
const maxReplaced = 32

// replaced returns the object that a new one replaces, with those that it replaced itself, down to the newest one of which
// the off-site copy has the bytes: a recovery without the bytes of the new one brings the newest of them back of which it
// has any. A small object needs none, because its bytes are copied with its record. Versions that are kept need none
// either: they are there.
func (s *Service) replaced(b model.Bucket, object model.Object) *model.Object {
	if s.copied == nil || object.Blob == "" || object.Versioned {
		return nil
	}
	id := "" // any is the null version
	if b.Versioning != model.VersioningOff {
		id = model.NullVersion
	}
	old, err := s.version(object.Bucket, object.Key, id)
	if err != nil {
		return nil
	}
	return s.downToCopied(old, maxReplaced)
}

// downToCopied returns an object with those that it replaced, down to the newest copied one. Of more than most it leaves out
// the oldest that are not copied.
func (s *Service) downToCopied(o model.Object, most int) *model.Object {
	if s.inCopy(o) {
		o.Replaced = nil
	}
	if o.Replaced == nil {
		return &o
	}
	before := s.downToCopied(*o.Replaced, most-1)
	if most <= 1 {
		return before
	}
	o.Replaced = before
	return &o
}

// inCopy reports whether the off-site copy has, or will have with the record, the bytes of an object.
func (s *Service) inCopy(o model.Object) bool {
	return o.Segment != 0 || o.Blob == "" || s.copied(blobstore.Ref(o.Blob))
}

// fetch opens bytes of a blob that is away.
func (s *Service) fetch(ctx context.Context, a blobstore.Away, from, n int64) (io.ReadCloser, error) {
	if s.fetchAway == nil {
		return nil, errors.New("this appliance runs without an off-site copy")
	}
	return s.fetchAway(ctx, a, from, n)
}

// readCopy lets an object be read from the off-site copy that is damaged on this disk, and reports whether that may help. It
// does not once the copy was found damaged too, or is another one.
func (s *Service) readCopy(object model.Object, err error) bool {
	if !isDamagedHere(err) || s.fetchAway == nil || s.isKnownDamaged(object) {
		return false
	}
	if failed, tried := errors.AsType[*blobstore.CopyError](err); tried && isLostThere(failed.Err) {
		return false
	}
	return s.core.Blobs.ReadCopy(blobstore.Ref(object.Blob))
}

// fetchAgain fetches the bytes of an object that are damaged on this disk and may be whole in the off-site copy. The bytes here
// stay until they are.
func (s *Service) fetchAgain(ctx context.Context, object model.Object, damage error) error {
	log := s.core.Log.With("bucket", object.Bucket, "key", object.Key, "version", object.Version)
	err := s.core.Blobs.Fetch(ctx, blobstore.Ref(object.Blob))
	switch {
	case err == nil:
		log.Warn("an object was damaged on this disk and has been fetched from the off-site copy", "error", damage)
	case ctx.Err() != nil:
	case isLostThere(err):
		s.reportDamage(object, fmt.Errorf("%w, and elsewhere: %w", damage, &blobstore.CopyError{Err: err}))
	default:
		log.Warn("an object is damaged on this disk and cannot be fetched from the off-site copy now", "error", damage, "fetch", err)
	}
	return err
}

// isDamagedHere reports whether an error of reading means that bytes on this disk are damaged.
func isDamagedHere(err error) bool {
	return errors.Is(err, blobstore.ErrDamaged) || errors.Is(err, syscall.EIO)
}

// isLostThere reports whether an error of fetching will not pass by itself.
func isLostThere(err error) bool {
	_, other := errors.AsType[*OtherCopyError](err)
	return other || errors.Is(err, blobstore.ErrDamaged)
}

// noteDamagedList logs that it is not known any more which large objects are in the off-site copy only.
func (s *Service) noteDamagedList(path string, err error) {
	s.core.Log.Error("a list of large objects that are in the off-site copy only is damaged: they cannot be read until the copy's first checkpoint lists them again", "moved_to", path, "error", err)
}

// away returns the error for a client that requests an object whose bytes could not be fetched.
func away(err error) error {
	message := "the object's bytes are in the off-site copy only, which cannot be read now: try again later; the operator can look at `holdfast offsite status`"
	if errors.Is(err, blobstore.ErrDamaged) {
		message = "the object's bytes are in the off-site copy only, and are damaged or missing there: upload it again, or have the operator recover an earlier point"
	}
	wait := awayRetry
	if other, ok := errors.AsType[*OtherCopyError](err); ok {
		wait = otherCopyRetry
		message = fmt.Sprintf("the object's bytes are only in the off-site copy %s, which this appliance does not use now: have the operator start it with the store of that copy as --offsite", other.Repository)
	}
	return &model.Error{Code: model.CodeInternal, Reason: model.ReasonUnavailable, Message: message, RetryAfter: wait, Err: err}
}
