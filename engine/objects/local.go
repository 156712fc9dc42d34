package objects

import (
	"holdfast/blobstore"
	"holdfast/engine/model"
)

// Evicts reports whether large objects may leave this disk for the off-site copy.
func (s *Service) Evicts() bool {
	c := s.core.Config
	return c.Offsite.URL != "" && (c.LocalObjects.Bytes > 0 || c.LocalObjects.Share > 0)
}

// MayLeave reports whether an object of that size may leave this disk.
func (s *Service) MayLeave(size int64) bool {
	return s.Evicts() && size >= s.core.Config.LocalObjects.Above
}

// LocalLimit returns how many bytes the files of the blob store may take, where objects may leave this disk: what is
// configured, and less when uploads are about to be refused for lack of space.
func (s *Service) LocalLimit() int64 {
	total, free, err := s.space.measure(blobDirectory(s.core))
	limit := s.core.Config.LocalObjects.Bytes
	if err != nil || total <= 0 {
		return limit
	}
	if share := s.core.Config.LocalObjects.Share; share > 0 {
		limit = int64(share * float64(total))
	}
	return max(0, min(limit, s.core.Blobs.Local()+free-2*uploadReserve(total)))
}

// Away returns how many objects are in the off-site copy only, by a count.
func (s *Service) Away() (objects int64, err error) {
	err = s.core.Blobs.EachListed(func(a blobstore.Away, here bool) error {
		if here {
			return nil
		}
		known, err := s.blobKnown(a.Ref)
		if known {
			objects++
		}
		return err
	})
	return objects, err
}

// room returns an error if a blob that is away should not be kept on this disk once it was fetched. As for uploads, the bound
// is for those that may leave again.
func (s *Service) room(size int64) error {
	if s.MayLeave(size) && s.core.Blobs.Local()+size > s.LocalLimit() {
		return model.Errorf(model.CodeForbidden, "large objects take as much of this disk as they may (--objects-local-size)")
	}
	return s.space.refuse(size)
}

// used notes that an object is read, so that others leave this disk first.
func (s *Service) used(object model.Object) {
	if s.MayLeave(object.SizeBytes) {
		s.core.Blobs.Use(blobstore.Ref(object.Blob))
	}
}
