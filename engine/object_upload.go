package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"holdfast/blobstore"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Upload is an object on its way in.
type Upload struct {
	Bucket      string
	Key         string
	ContentType string
	Body        io.Reader
	// Length is how many bytes Body will give, -1 when that is not known.
	Length int64
	// IfAbsent refuses to replace an object.
	IfAbsent bool
	// SHA256 and CRC32C are what the client says of the bytes, in base64 (the
	// CRC big-endian); "" when it says nothing.
	SHA256, CRC32C string
}

// ObjectView is an object with where its bytes can be had.
type ObjectView struct {
	model.Object
	DownloadPath string // signed, without the host
	PublicPath   string // "" in a private bucket
}

// ObjectUpload stores an object. It is there, whole and durable, when this
// returns nil, and otherwise not at all; the object it replaces stays until
// then.
func (e *Engine) ObjectUpload(ctx context.Context, call *model.Call, in Upload) (ObjectView, error) {
	if err := in.validate(e.cfg.MaxObjectBytes); err != nil {
		return ObjectView{}, err
	}
	bucket, err := e.bucket(call, in.Bucket)
	if err != nil {
		return ObjectView{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	if err := e.refuseUpload(call, in); err != nil {
		return ObjectView{}, err
	}
	object, err := e.writeBlob(ctx, in)
	if err != nil {
		return ObjectView{}, err
	}
	call.Note("size_bytes", fmt.Sprint(object.SizeBytes))
	if err := e.publishObject(call, in, &object); err != nil {
		return ObjectView{}, errors.Join(err, e.blobs.Remove(blobstore.Ref(object.Blob)))
	}
	return e.objectView(bucket, object), nil
}

func (in Upload) validate(largest int64) error {
	if err := model.ValidateObjectKey("key", in.Key); err != nil {
		return err
	}
	if in.Length > largest {
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

func tooLarge(largest int64) error {
	return model.Invalid("body", "an object may have at most %d bytes", largest)
}

// refuseUpload refuses, before the body is read, what could not be published
// after it.
func (e *Engine) refuseUpload(call *model.Call, in Upload) error {
	return e.meta.View(func(tx *meta.Tx) error {
		if in.IfAbsent {
			if err := refuseReplacing(tx, in); err != nil {
				return err
			}
		}
		before, err := tx.Totals(call.Organization)
		if err != nil {
			return err
		}
		after := before.Plus(model.Totals{Objects: 1, StorageBytes: max(in.Length, 0)}, 1)
		if old, err := tx.Object(in.Bucket, in.Key); err == nil {
			after = after.Plus(model.Totals{Objects: 1, StorageBytes: old.SizeBytes}, -1)
		}
		return e.allowed(tx, call.Organization, before, after)
	})
}

func refuseReplacing(tx *meta.Tx, in Upload) error {
	_, err := tx.Object(in.Bucket, in.Key)
	if errors.Is(err, meta.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = model.Errorf(model.CodeConflict, "an object with this key exists, and If-None-Match: * forbids replacing it")
	}
	return err
}

// writeBlob streams the body into a durable blob, checking it on the way.
func (e *Engine) writeBlob(ctx context.Context, in Upload) (model.Object, error) {
	w, err := e.blobs.Create(ctx)
	if err != nil {
		return model.Object{}, storeError(err)
	}
	defer w.Abort()
	digest := in.digest()
	size, err := io.Copy(io.MultiWriter(w, digest), io.LimitReader(in.Body, e.cfg.MaxObjectBytes+1))
	switch {
	case err != nil:
		return model.Object{}, uploadError(err)
	case size > e.cfg.MaxObjectBytes:
		return model.Object{}, tooLarge(e.cfg.MaxObjectBytes)
	case in.Length >= 0 && size != in.Length:
		return model.Object{}, model.Invalid("body", "ended after %d of %d bytes", size, in.Length)
	}
	if err := in.check(w.CRC32C(), digest); err != nil {
		return model.Object{}, err
	}
	ref, size, err := w.Commit()
	if err != nil {
		return model.Object{}, storeError(err)
	}
	now := e.clock()
	return model.Object{
		Bucket: in.Bucket, Key: in.Key, Version: e.ids.next(now), Blob: string(ref), SizeBytes: size,
		ContentType: in.ContentType, CRC32C: w.CRC32C(), ChecksumSHA256: in.SHA256, LastModified: now,
	}, nil
}

// digest hashes with SHA-256 only where the client asked for it: that costs
// more than everything else about an upload.
func (in Upload) digest() hash.Hash {
	if in.SHA256 == "" {
		return nothing{}
	}
	return sha256.New()
}

// nothing is a hash of nothing.
type nothing struct{ hash.Hash }

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

func (in Upload) check(crc uint32, digest hash.Hash) error {
	if got := encodeCRC32C(crc); in.CRC32C != "" && in.CRC32C != got {
		return model.Invalid("X-Checksum-CRC32C", "the body's CRC-32C is %s: the upload was damaged on its way", got)
	}
	if in.SHA256 == "" {
		return nil
	}
	if got := base64.StdEncoding.EncodeToString(digest.Sum(nil)); got != in.SHA256 {
		return model.Invalid("X-Checksum-SHA256", "the body's SHA-256 is %s: the upload was damaged on its way", got)
	}
	return nil
}

func encodeCRC32C(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// publishObject commits the object's row; what it replaces is unlinked after.
func (e *Engine) publishObject(call *model.Call, in Upload, object *model.Object) error {
	var replaced string
	err := e.change(call, func(tx *meta.Tx) error {
		if _, err := bucketOf(tx, call.Organization, in.Bucket); err != nil {
			return err
		}
		if in.IfAbsent {
			if err := refuseReplacing(tx, in); err != nil {
				return err
			}
		}
		replaced = ""
		if old, err := tx.Object(in.Bucket, in.Key); err == nil {
			replaced = old.Blob
		}
		return e.withinPlan(tx, call.Organization, func() error { return tx.PutObject(*object) })
	})
	if err == nil && replaced != "" {
		e.unlinkSoon()
	}
	return err
}

// uploadError tells a body that could not be read from a disk that could not
// be written.
func uploadError(err error) error {
	if public, ok := errors.AsType[*model.Error](err); ok {
		return public
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &model.Error{Code: model.CodeValidation, Message: "body: ended before its announced length", Err: err}
	}
	return storeError(err)
}

func objectResource(bucket, key string) model.Resource {
	return model.Resource{Type: model.ResourceObject, ID: bucket, Name: key}
}
