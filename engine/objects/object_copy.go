package objects

import (
	"context"
	"maps"
	"strings"

	"holdfast/engine/model"
)

// Copy is an object to make of a version of another, or of its own key.
type Copy struct {
	Source      VersionName
	Bucket, Key string
	// IfAbsent makes the copy fail if the object exists.
	IfAbsent bool
}

// ObjectCopy makes an object with the content of another, and with what is stored with it apart from its lock.
func (s *Service) ObjectCopy(ctx context.Context, call *model.Call, in Copy) (ObjectView, error) {
	if err := model.ValidateNewObjectKey("key", in.Key); err != nil {
		return ObjectView{}, err
	}
	if err := model.ValidateObjectKey("source_key", in.Source.Key); err != nil {
		return ObjectView{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return ObjectView{}, err
	}
	if _, err := s.bucket(call, in.Bucket); err != nil {
		return ObjectView{}, err
	}
	source, err := s.ObjectOpen(ctx, call, in.Source.Bucket, in.Source.Key, in.Source.Version)
	if err != nil {
		return ObjectView{}, err
	}
	defer source.Content.Close()
	call.Note("source", in.Source.Bucket+"/"+in.Source.Key)
	call.Note("source_version", source.VersionID())
	return s.store(ctx, call, Upload{
		Bucket: in.Bucket, Key: in.Key, ContentType: source.ContentType, Body: source.Content, Length: source.SizeBytes,
		MaxBytes: s.core.Config.MaxObjectBytes, IfAbsent: in.IfAbsent, Tags: maps.Clone(source.Tags),
		Describe: func(o *model.Object) { describeCopy(o, source.Object) },
	}, false)
}

// describeCopy gives a copy what is stored with the original, apart from its lock.
func describeCopy(o *model.Object, original model.Object) {
	o.Attributes = CopiedAttributes(original)
	if !strings.Contains(original.ETag, "-") { // an MD5, not that of parts
		o.ETag = original.ETag
	}
}

// CopiedAttributes returns the attributes that a copy of an object has: not those of its parts.
func CopiedAttributes(o model.Object) *model.Attributes {
	a := model.Attributes{}
	if o.Attributes != nil {
		a = *o.Attributes
	}
	a.Parts, a.Upload, a.PartSizes = 0, "", nil
	if strings.Contains(a.Checksum, "-") { // of the parts
		a.ChecksumAlgorithm, a.Checksum = "", ""
	}
	return &a
}
