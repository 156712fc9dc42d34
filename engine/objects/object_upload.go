package objects

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"holdfast/blobstore"
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Upload is an object to store.
type Upload struct {
	Bucket      string
	Key         string
	ContentType string
	Body        io.Reader
	// Open sets ContentType and Body once the upload is admitted; nil if they are already known.
	Open func(*Upload) error
	// Length is the number of bytes of Body, -1 if that is unknown; then Least is a lower bound.
	Length, Least int64
	// IfAbsent makes the upload fail if the object exists.
	IfAbsent bool
	// IfMatch makes the upload fail unless it replaces an object with this model.Object.EntityTag, "" for no condition.
	IfMatch string
	// Describe sets the ETag and attributes of the object once Body was read to its end; nil if it has none.
	Describe func(*model.Object)
	// Lock keeps the version from being removed; nil for what the bucket has set.
	Lock *model.ObjectLock
	Tags map[string]string
	// SHA256 and CRC32C are the client's checksums in base64 (the CRC big-endian), "" if it sent none.
	SHA256, CRC32C string
	// MaxBytes is the maximum length of Body, 0 for the operator's.
	MaxBytes int64
	// over is the version that must still be the latest of the key, "" for none; nil for no condition.
	over *string
	// linked means that the caller is the holder of an upload link, who may read nothing.
	linked bool
	// resumed is the resumable or multipart upload that this completes, "" for none.
	resumed string
	// reserved is the number of its bytes that the totals already count.
	reserved int64
}

// ObjectView is an object with the paths of its downloads.
type ObjectView struct {
	model.Object
	DownloadPath string // signed, without the host; "" for callers without read permission
	PublicPath   string // "" in a private bucket
}

// ObjectUpload stores an object. When ObjectUpload returns nil, the object is complete and durable; otherwise it is
// absent. Until then the object that it replaces stays.
func (s *Service) ObjectUpload(ctx context.Context, call *model.Call, in Upload) (ObjectView, error) {
	if in.MaxBytes == 0 || in.MaxBytes > s.core.Config.MaxObjectBytes {
		in.MaxBytes = s.core.Config.MaxObjectBytes
	}
	if err := in.validate(in.MaxBytes); err != nil {
		return ObjectView{}, err
	}
	if err := s.core.ClaimIdempotencyKeyStreamed(call, func() ([]byte, error) { return in.digestAll(in.MaxBytes) }); err != nil {
		return ObjectView{}, err
	}
	return s.store(ctx, call, in, call.Idempotent != "")
}

// store stores the object of a call that may make one. With fingerprint, the digest of the body identifies repetitions of
// the call.
func (s *Service) store(ctx context.Context, call *model.Call, in Upload, fingerprint bool) (ObjectView, error) {
	bucket, err := s.bucket(call, in.Bucket)
	if err != nil {
		return ObjectView{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	if err := s.refuseUpload(ctx, call, bucket, in, in.minSize()); err != nil {
		return ObjectView{}, err
	}
	if err := in.open(); err != nil {
		return ObjectView{}, err
	}
	var sum func() []byte
	if fingerprint {
		sum = in.digest()
	}
	w, err := s.core.Blobs.Create(ctx)
	if err != nil {
		return ObjectView{}, storeError(err)
	}
	defer w.Abort()
	in.Body = s.space.withinReserve(in.Body, in.Length < 0)
	if err := in.copyTo(w, in.MaxBytes); err != nil {
		return ObjectView{}, err
	}
	if sum != nil {
		call.Repeatable.Fingerprint = s.core.FingerprintStreamed(call, sum())
	}
	object, err := s.publishObject(ctx, call, in, w)
	view := s.objectView(bucket, object)
	if in.linked || !call.Holds(model.ScopeStorageRead) {
		view.DownloadPath = "" // it would grant access to later objects under the key
	}
	return view, err
}

// open sets the body and its type if they are not known yet.
func (in *Upload) open() error {
	if in.Open == nil {
		return nil
	}
	return in.Open(in)
}

// digest hashes the body as it is read. sum returns the hash of the content type and the bytes.
func (in *Upload) digest() (sum func() []byte) {
	digest := sha256.New()
	digest.Write(core.HashParts(in.ContentType))
	in.Body = io.TeeReader(in.Body, digest)
	return func() []byte { return digest.Sum(nil) }
}

// digestAll reads the whole body and returns its digest without storing it.
func (in Upload) digestAll(largest int64) ([]byte, error) {
	if err := in.open(); err != nil {
		return nil, err
	}
	sum := in.digest()
	size, err := io.Copy(io.Discard, io.LimitReader(in.Body, largest+1))
	switch {
	case err != nil:
		return nil, uploadError(err)
	case size > largest:
		return nil, tooLarge(largest)
	}
	return sum(), nil
}

// minSize returns the minimum size of the body in bytes.
func (in Upload) minSize() int64 { return max(in.Length, in.Least, 0) }

func (in Upload) validate(largest int64) error {
	if err := model.ValidateNewObjectKey("key", in.Key); err != nil {
		return err
	}
	if in.minSize() > largest {
		return tooLarge(largest)
	}
	for _, sum := range []struct {
		field, text string
		size        int
	}{{"X-Checksum-SHA256", in.SHA256, sha256.Size}, {"X-Checksum-CRC32C", in.CRC32C, 4}} {
		if raw, err := base64.StdEncoding.DecodeString(sum.text); sum.text != "" && (err != nil || len(raw) != sum.size) {
			return model.Invalid(sum.field, "must be the checksum's %d bytes in base64", sum.size)
		}
	}
	return nil
}

// ErrTooLarge means that an object is larger than the operator allows.
var ErrTooLarge = errors.New("object too large")

func tooLarge(largest int64) error {
	return &model.Error{
		Code: model.CodeValidation, Reason: model.ReasonTooLarge,
		Message: fmt.Sprintf("body: an object may have at most %d bytes", largest), Err: ErrTooLarge,
	}
}

// MaxObjectBytes returns the maximum size of an object.
func (s *Service) MaxObjectBytes() int64 { return s.core.Config.MaxObjectBytes }

// refuseUpload refuses an upload that could not be published, before the body is read. It takes that many bytes of the disk.
func (s *Service) refuseUpload(ctx context.Context, call *model.Call, b model.Bucket, in Upload, takes int64) error {
	if err := s.refuseReplacing(in); err != nil {
		return err
	}
	if err := s.permitLock(call, b, in.Lock); err != nil {
		return err
	}
	if takes > 0 {
		if err := s.space.refuse(takes); err != nil {
			return err
		}
	}
	return s.withinPlan(ctx, call.Organization, func() error {
		release, err := s.reserveObject(call.Organization, b, in, in.minSize())
		if err == nil {
			release()
		}
		return err
	})
}

func (s *Service) refuseReplacing(in Upload) error {
	if in.over != nil {
		return s.refuseWritten(in)
	}
	if !in.IfAbsent && in.IfMatch == "" {
		return nil
	}
	old, err := s.object(in.Bucket, in.Key)
	switch {
	case in.IfMatch != "" && err == nil && old.EntityTag() != in.IfMatch:
		return model.Errorf(model.CodeConflict, "the object with this key has another ETag, and If-Match forbids replacing it")
	case in.IfMatch != "":
		return err
	case model.CodeOf(err) == model.CodeNotFound:
		return nil
	}
	if err == nil {
		err = model.Errorf(model.CodeConflict, "an object with this key exists, and If-None-Match: * forbids replacing it")
	}
	return err
}

// errWritten means that a client has written an object that was to be replaced.
var errWritten = errors.New("the object was written meanwhile")

func (s *Service) refuseWritten(in Upload) error {
	latest, err := s.latest(in.Bucket, in.Key)
	if err != nil && model.CodeOf(err) != model.CodeNotFound {
		return err
	}
	if latest.Version != *in.over {
		return errWritten
	}
	return nil
}

// copyTo streams the body into a blob and verifies its length and checksums.
func (in Upload) copyTo(w *blobstore.Writer, largest int64) error {
	body := io.LimitReader(in.Body, largest+1)
	var digest hash.Hash
	if in.SHA256 != "" { // only if asked for: SHA-256 costs more than the rest of an upload
		digest = sha256.New()
		body = io.TeeReader(body, digest)
	}
	size, err := w.ReadFrom(body)
	switch {
	case err != nil:
		return uploadError(err)
	case size > largest:
		return tooLarge(largest)
	case in.Length >= 0 && size != in.Length:
		return model.Invalid("body", "ended after %d of %d bytes", size, in.Length)
	}
	return in.check(w.CRC32C(), digest)
}

func (in Upload) check(crc uint32, digest hash.Hash) error {
	if in.CRC32C != "" {
		if got := encodeCRC32C(crc); got != in.CRC32C {
			return model.Invalid("X-Checksum-CRC32C", "the body's CRC-32C is %s: the upload was damaged on its way", got)
		}
	}
	if in.SHA256 != "" {
		if got := base64.StdEncoding.EncodeToString(digest.Sum(nil)); got != in.SHA256 {
			return model.Invalid("X-Checksum-SHA256", "the body's SHA-256 is %s: the upload was damaged on its way", got)
		}
	}
	return nil
}

func encodeCRC32C(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// publishObject turns the blob into an object and records the call's audit entry. The blob that it replaces is removed
// later.
func (s *Service) publishObject(ctx context.Context, call *model.Call, in Upload, w *blobstore.Writer) (object model.Object, err error) {
	blob, err := w.Secure() // before taking the locks
	if err != nil {
		return model.Object{}, storeError(err)
	}
	err = s.withinPlan(ctx, call.Organization, func() (err error) {
		object, err = s.publishBlob(call, in, w, blob)
		return err
	})
	return object, err
}

// publishBlob is publishObject for a blob that is durable, or small.
func (s *Service) publishBlob(call *model.Call, in Upload, w *blobstore.Writer, blob blobstore.Ref) (model.Object, error) {
	b, release, err := s.lockObject(call, in.Bucket, in.Key)
	if err != nil {
		return model.Object{}, err
	}
	defer release()
	if err := s.refuseReplacing(in); err != nil {
		return model.Object{}, err
	}
	used, err := s.reserveObject(call.Organization, b, in, w.Size())
	if err != nil {
		return model.Object{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	call.Note("size_bytes", strconv.FormatInt(w.Size(), 10))
	now := s.core.RetentionClock()
	lock, err := lockOf(b, in.Lock, now)
	if err != nil {
		used()
		return model.Object{}, err
	}
	object := model.Object{
		Bucket: in.Bucket, Key: in.Key, Version: s.newVersion(b, in.Key, now), Versioned: b.Versioning == model.VersioningEnabled,
		Blob: string(blob), SizeBytes: w.Size(), Lock: lock, Tags: in.Tags,
		ContentType: in.ContentType, CRC32C: w.CRC32C(), ChecksumSHA256: in.SHA256, LastModified: now,
	}
	if in.Describe != nil {
		in.Describe(&object)
	}
	object.Replaced = s.replaced(b, object)
	note := &objectNote{Act: actPut, Object: object, Upload: in.resumed, Idempotent: call.Idempotent, Keep: s.keepsRemoved(), counted: used}
	err = s.logObject(call, note, func(text []byte, note *objectNote) error {
		_, err := w.Publish(text, note)
		return err
	})
	if err != nil {
		used()
	}
	return object, err
}

// logObject makes a note and the call's audit entry durable, unless the caller's authority has ended.
func (s *Service) logObject(call *model.Call, note *objectNote, log func([]byte, *objectNote) error) error {
	note.Audit = s.core.Entry(call, nil)
	text, err := note.encode()
	if err != nil {
		return err
	}
	if err := s.core.Meta.Accepting(); err != nil {
		return metadataUnavailable(err)
	}
	if err := s.core.WithAuthority(call, func() error { return log(text, note) }); err != nil {
		return storeError(err)
	}
	call.Audited = true
	return nil
}

// metadataUnavailable returns the error for a client when the metadata cannot follow the
// journal.
func metadataUnavailable(err error) error {
	if core.IsDiskFull(err) {
		return core.ExplainDiskFull(err)
	}
	return &model.Error{
		Code:    model.CodeForbidden,
		Message: "the metadata cannot be written to: nothing was stored; the operator must check the disk", Err: err,
	}
}

// uploadError distinguishes an unreadable body from an unwritable disk.
func uploadError(err error) error {
	if _, ok := errors.AsType[*model.Error](err); ok {
		return err
	}
	if errors.Is(err, ErrAway) { // the body is that of an object that is copied
		return away(err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &model.Error{Code: model.CodeValidation, Message: "body: ended before its announced length", Err: err}
	}
	return storeError(err)
}

func objectResource(bucket, key string) model.Resource {
	return model.Resource{Type: model.ResourceObject, ID: bucket, Name: key}
}
