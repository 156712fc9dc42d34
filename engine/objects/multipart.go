package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

const (
	// MultipartLife is how long a multipart upload is kept after its last part.
	MultipartLife = 7 * 24 * time.Hour
	// MaxParts is the largest number of a part.
	MaxParts = 10_000
	// MinPartBytes is the size of the smallest part but the last.
	MinPartBytes = 5 << 20
)

// NewMultipart holds the properties of a multipart upload to create.
type NewMultipart struct {
	Bucket, Key, ContentType string
	Attributes               *model.Attributes
	FullChecksum             bool
	Lock                     *model.ObjectLock
	Tags                     map[string]string
}

// MultipartCreate begins a multipart upload. Its parts count toward the organization's totals until it is complete or
// aborted.
func (s *Service) MultipartCreate(call *model.Call, in NewMultipart) (model.Multipart, error) {
	if err := model.ValidateNewObjectKey("key", in.Key); err != nil {
		return model.Multipart{}, err
	}
	b, err := s.bucket(call, in.Bucket)
	if err != nil {
		return model.Multipart{}, err
	}
	call.Resource = objectResource(in.Bucket, in.Key)
	if err := s.permitLock(call, b, in.Lock); err != nil {
		return model.Multipart{}, err
	}
	m := model.Multipart{
		ID: s.core.NewID(model.ResourceUpload), Organization: call.Organization, Bucket: in.Bucket, Key: in.Key,
		ContentType: in.ContentType, Attributes: in.Attributes, FullChecksum: in.FullChecksum, Lock: in.Lock, Tags: in.Tags,
		CreatedAt: s.core.Clock(), ExpiresAt: s.core.RetentionClock().Add(MultipartLife),
	}
	return m, s.core.Change(call, func(tx *meta.Tx) error {
		if err := checkUploadLimit(tx, call.Organization); err != nil {
			return err
		}
		return tx.Multiparts().Insert(m)
	})
}

// MultipartGet returns a multipart upload of the call's organization.
func (s *Service) MultipartGet(call *model.Call, bucket, key, id string) (model.Multipart, error) {
	call.Resource = model.Resource{Type: model.ResourceUpload, ID: id}
	complete := s.recent.completed(id) // before reading the record, which is removed later
	m, err := meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Multipart, error) { return tx.Multiparts().Get(id) })
	if errors.Is(err, meta.ErrNotFound) || err == nil && (complete || m.Organization != call.Organization || m.Bucket != bucket || m.Key != key) {
		return m, noMultipart(id)
	}
	return m, err
}

func noMultipart(id string) error {
	return model.Errorf(model.CodeNotFound, "no multipart upload %q: it is complete, was aborted, or never was", id)
}

// MultipartParts returns a multipart upload and its parts by number.
func (s *Service) MultipartParts(call *model.Call, bucket, key, id string) (m model.Multipart, parts []model.MultipartPart, err error) {
	if m, err = s.MultipartGet(call, bucket, key, id); err != nil {
		return m, nil, err
	}
	parts, err = s.partsOf(id)
	return m, parts, err
}

func (s *Service) partsOf(id string) ([]model.MultipartPart, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.MultipartPart, error) { return tx.MultipartPartsOf(id) })
}

// MultipartList returns the multipart uploads into a bucket, newest first.
func (s *Service) MultipartList(call *model.Call, bucket string) ([]model.Multipart, error) {
	if _, err := s.bucket(call, bucket); err != nil {
		return nil, err
	}
	return meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) ([]model.Multipart, error) {
		return core.AllBy(tx.Multiparts(), meta.ByBucket, meta.Key(bucket))
	})
}

// claimMultipart returns a multipart upload and claims its end, once another request that ends it is done. The caller
// releases the claim.
func (s *Service) claimMultipart(ctx context.Context, call *model.Call, bucket, key, id, what string) (m model.Multipart, release func(), err error) {
	if m, err = s.MultipartGet(call, bucket, key, id); err != nil {
		return m, nil, err
	}
	if release, err = s.core.Claims.TakeAfter(ctx, "upload/"+id, what); err != nil {
		return m, nil, err
	}
	return s.claimedMultipart(call, bucket, key, id, release)
}

// claimedMultipart returns the upload whose end is claimed, or releases the claim.
func (s *Service) claimedMultipart(call *model.Call, bucket, key, id string, claim func()) (m model.Multipart, release func(), err error) {
	if m, err = s.MultipartGet(call, bucket, key, id); err != nil {
		claim()
		return m, nil, err
	}
	return m, claim, nil
}

// MultipartAbort ends a multipart upload and removes its parts.
func (s *Service) MultipartAbort(ctx context.Context, call *model.Call, bucket, key, id string) error {
	m, release, err := s.claimMultipart(ctx, call, bucket, key, id, "a request that ends it")
	if err != nil {
		return err
	}
	defer release()
	return s.dropMultipart(call, m.ID, func(*meta.Tx) error { return nil })
}

// dropMultipart removes an upload with its parts, unless the transaction that does so finds an error first.
func (s *Service) dropMultipart(call *model.Call, id string, first func(*meta.Tx) error) error {
	var refs []string
	err := s.core.Change(call, func(tx *meta.Tx) (err error) {
		if err := first(tx); err != nil {
			return err
		}
		refs, err = tx.DropMultipart(id)
		return err
	})
	if err != nil {
		return err
	}
	return s.removeParts(refs)
}

// removeParts removes bytes of parts without records. RecoverUploads removes what a crash leaves of them.
func (s *Service) removeParts(refs []string) error {
	s.core.RemovalLock.RLock()
	defer s.core.RemovalLock.RUnlock()
	var errs []error
	for _, ref := range refs {
		errs = append(errs, s.core.Blobs.RemovePart(ref))
	}
	return errors.Join(errs...)
}

// endMultipart removes a completed upload with its parts, also those that arrived while it was being completed.
func (s *Service) endMultipart(tx *meta.Tx, id string) error {
	refs, err := tx.DropMultipart(id)
	if err == nil && len(refs) > 0 {
		tx.OnCommit(func() { s.removePartsSoon(id, refs) })
	}
	return err
}

// removePartsSoon removes the parts of a completed upload in the background. While a start replays the journal, the store is
// not open yet, and it leaves them to RecoverUploads.
func (s *Service) removePartsSoon(id string, refs []string) {
	if !s.opened.Load() {
		return
	}
	s.core.Background(func(context.Context) {
		if err := s.removeParts(refs); err != nil {
			s.core.Log.Warn("remove the parts of a completed upload", "upload", id, "error", err)
		}
	})
}

// sweepMultiparts aborts the multipart uploads that have expired or whose bucket is gone.
func (s *Service) sweepMultiparts(ctx context.Context) error {
	var due []model.Multipart
	var ahead []string
	err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		return tx.Multiparts().All(func(m model.Multipart) error {
			if s.core.WasAhead(m.ExpiresAt, MultipartLife) {
				ahead = append(ahead, m.ID)
			}
			ended, err := s.multipartEnded(tx, m)
			if ended {
				due = append(due, m)
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	errs := []error{core.Redate(s.core, (*meta.Tx).Multiparts, ahead, func(m *model.Multipart) *time.Time { return &m.ExpiresAt }, MultipartLife)}
	for _, m := range due {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, s.sweepMultipart(m))
	}
	return errors.Join(errs...)
}

// errGoesOn means that an upload has not ended.
var errGoesOn = errors.New("the upload goes on")

// multipartEnded reports whether an upload has expired or its bucket is gone.
func (s *Service) multipartEnded(tx *meta.Tx, m model.Multipart) (bool, error) {
	if s.core.MayRemove(m.ExpiresAt) {
		return true, nil
	}
	_, err := tx.Buckets().Get(m.Bucket)
	if errors.Is(err, meta.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// sweepMultipart aborts an upload, unless it has had a part or got its bucket back since it was found.
func (s *Service) sweepMultipart(m model.Multipart) error {
	call := s.core.System(model.ActionUploadExpire, m.Organization, objectResource(m.Bucket, m.Key))
	claim, err := s.core.Claims.TakeBriefly("upload/"+m.ID, "a clean-up")
	if err != nil {
		return nil // it ends otherwise
	}
	_, release, err := s.claimedMultipart(call, m.Bucket, m.Key, m.ID, claim)
	if err != nil {
		return nil // it ends otherwise
	}
	defer release()
	call.Resource = objectResource(m.Bucket, m.Key)
	err = s.dropMultipart(call, m.ID, func(tx *meta.Tx) error {
		m, err := tx.Multiparts().Get(m.ID)
		if err != nil {
			return err
		}
		ended, err := s.multipartEnded(tx, m)
		if err == nil && !ended {
			return errGoesOn
		}
		return err
	})
	if errors.Is(err, errGoesOn) {
		return nil
	}
	return err
}

// keepMultiparts removes the bytes of multipart uploads from a set of orphans.
func (s *Service) keepMultiparts(orphans map[string]bool) error {
	return s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		kept := map[string]bool{}
		keep := func(ref string) (found bool) {
			kept[ref] = kept[ref] || orphans[ref] // several parts may have one
			delete(orphans, ref)
			return kept[ref]
		}
		if err := tx.Multiparts().All(func(m model.Multipart) error {
			keep(m.Joint)
			return nil
		}); err != nil {
			return err
		}
		return tx.MultipartParts().All(func(p model.MultipartPart) error {
			if !keep(p.Part) {
				s.core.Log.Warn("a part of a multipart upload has lost its bytes", "upload", p.Multipart, "part", fmt.Sprint(p.Number))
			}
			return nil
		})
	})
}
