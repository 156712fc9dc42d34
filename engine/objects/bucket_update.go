package objects

import (
	"fmt"
	"strings"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BucketChange holds the properties of a bucket to change; nil leaves one unchanged.
type BucketChange struct {
	Public          *bool
	PublicPrefixes  *[]string
	PublicListing   *bool
	ExpireAfterDays *int
	Lifecycle       string // the document that says ExpireAfterDays, "" if none does
	Versioning      *model.Versioning
	Lock            *model.BucketLock
	Tags            *map[string]string
	CORS            *[]model.CORSRule
	Website         *model.Website
	NoWebsite       bool
}

// BucketGet returns a bucket.
func (s *Service) BucketGet(call *model.Call, id string) (model.Bucket, error) {
	if _, err := s.bucket(call, id); err != nil {
		return model.Bucket{}, err
	}
	return meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (model.Bucket, error) { return bucketOf(tx, call.Organization, id) }) // with current counters
}

// BucketUpdate changes a bucket. A shorter expiry needs the permission to delete
// objects.
func (s *Service) BucketUpdate(call *model.Call, id string, change BucketChange) (model.Bucket, error) {
	if change.ExpireAfterDays != nil {
		if err := model.ValidateExpireDays("expire_after_days", *change.ExpireAfterDays); err != nil {
			return model.Bucket{}, err
		}
	}
	if change.PublicPrefixes != nil {
		prefixes, err := model.ValidatePublicPrefixes("public_prefixes", *change.PublicPrefixes)
		if err != nil {
			return model.Bucket{}, err
		}
		change.PublicPrefixes = &prefixes
	}
	if change.CORS != nil {
		if err := model.ValidateCORS("cors", *change.CORS); err != nil {
			return model.Bucket{}, err
		}
	}
	if change.Website != nil {
		if err := s.checkWebsite(*change.Website); err != nil {
			return model.Bucket{}, err
		}
	}
	if change.Lock != nil {
		if err := change.Lock.Validate("object_lock"); err != nil {
			return model.Bucket{}, err
		}
	}
	if _, err := s.bucket(call, id); err != nil {
		return model.Bucket{}, err
	}
	change.note(call)
	if change.Versioning != nil || change.Lock != nil || change.ExpireAfterDays != nil {
		defer s.locks.bucket(id)() // no upload or expiry is between reading these and what it does by them
	}
	var b model.Bucket
	err := s.core.Change(call, func(tx *meta.Tx) (err error) {
		old, err := bucketOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		if err := call.Match(old.Tag()); err != nil {
			return err
		}
		if change.expiresSooner(old) {
			if err := core.Permit(call, model.OperationFor(model.ActionBucketUpdate).Sometimes()); err != nil {
				return err
			}
		}
		if err := change.checkVersioning(old); err != nil {
			return err
		}
		b, err = tx.Buckets().Update(id, func(b *model.Bucket) error {
			if err := b.SetPublic(change.publicRights(*b)); err != nil {
				return err
			}
			if change.ExpireAfterDays != nil {
				s.setExpiry(b, change)
			}
			if change.Lock != nil {
				b.Lock = change.Lock
			}
			if change.Tags != nil {
				b.Tags = *change.Tags
			}
			if change.CORS != nil {
				b.CORS = *change.CORS
			}
			if change.Website != nil || change.NoWebsite {
				b.Website = change.Website
			}
			if change.Versioning != nil {
				b.Versioning = *change.Versioning
			}
			b.UpdatedAt = s.core.Clock()
			return nil
		})
		return err
	})
	return b, err
}

// setExpiry changes the age at which objects of b expire.
func (s *Service) setExpiry(b *model.Bucket, change BucketChange) {
	if change.expiresLater(*b) { // what has expired is gone for good
		b.HistorySince = s.core.Clock()
	}
	b.ExpireAfterDays, b.Lifecycle = *change.ExpireAfterDays, change.Lifecycle
}

// publicRights returns what everybody may do with b after the change.
func (c BucketChange) publicRights(b model.Bucket) model.PublicRights {
	return model.PublicRights{
		Read: either(c.Public, b.Public), Prefixes: either(c.PublicPrefixes, b.PublicPrefixes), List: either(c.PublicListing, b.PublicListing),
	}
}

// expiresSooner reports whether the change makes objects of b expire sooner.
func (c BucketChange) expiresSooner(b model.Bucket) bool {
	return c.ExpireAfterDays != nil && *c.ExpireAfterDays > 0 &&
		(b.ExpireAfterDays == 0 || *c.ExpireAfterDays < b.ExpireAfterDays)
}

// expiresLater reports whether the change keeps objects of b that would have expired.
func (c BucketChange) expiresLater(b model.Bucket) bool {
	return b.ExpireAfterDays > 0 && (*c.ExpireAfterDays == 0 || *c.ExpireAfterDays > b.ExpireAfterDays)
}

// checkVersioning refuses to turn versioning off once it was on: there may be versions.
func (c BucketChange) checkVersioning(b model.Bucket) error {
	versioning := b.Versioning
	if c.Versioning != nil {
		versioning = *c.Versioning
	}
	switch {
	case c.Lock != nil && versioning != model.VersioningEnabled:
		return bucketState("Object Lock needs versioning to be on")
	case versioning == b.Versioning:
		return nil
	case b.Lock != nil:
		return bucketState("the bucket has Object Lock: its versioning cannot be suspended")
	case versioning == model.VersioningOff:
		return model.Invalid("versioning", "cannot be turned off once it was on: suspend it")
	case versioning != model.VersioningEnabled && versioning != model.VersioningSuspended:
		return model.Invalid("versioning", "must be %q or %q", model.VersioningEnabled, model.VersioningSuspended)
	}
	return nil
}

func (c BucketChange) note(call *model.Call) {
	if c.Lock != nil {
		call.Note("lock", fmt.Sprintf("%s %d days %d years", c.Lock.Mode, c.Lock.Days, c.Lock.Years))
	}
	if c.Tags != nil {
		call.Note("tags", fmt.Sprint(len(*c.Tags)))
	}
	if c.CORS != nil {
		call.Note("cors", fmt.Sprint(len(*c.CORS)))
	}
	if c.Website != nil || c.NoWebsite {
		call.Note("website", fmt.Sprint(c.Website != nil))
	}
	if c.Versioning != nil {
		call.Note("versioning", string(*c.Versioning))
	}
	if c.Public != nil {
		call.Note("public", fmt.Sprint(*c.Public))
	}
	if c.PublicPrefixes != nil {
		call.Note("public_prefixes", strings.Join(*c.PublicPrefixes, " "))
	}
	if c.ExpireAfterDays != nil {
		call.Note("expire_after_days", fmt.Sprint(*c.ExpireAfterDays))
	}
}

// either returns what a change says, or what there is if it says nothing.
func either[T any](change *T, now T) T {
	if change != nil {
		return *change
	}
	return now
}
