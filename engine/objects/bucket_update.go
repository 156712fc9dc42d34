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
	ExpireAfterDays *int          // of the rule for the whole bucket
	Expiry          *model.Expiry // all rules
	Lifecycle       string        // the document that says Expiry, "" if none does
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
	if err := change.validateExpiry(); err != nil {
		return model.Bucket{}, err
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
	if change.Versioning != nil || change.Lock != nil || change.changesExpiry() {
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
		if err := change.checkRules(old); err != nil {
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
			if change.changesExpiry() {
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
	if err == nil && change.changesExpiry() {
		s.versionWalks.startAnew(id)
	}
	return b, err
}

// validateExpiry checks the rules of the change.
func (c *BucketChange) validateExpiry() error {
	if c.ExpireAfterDays != nil && c.Expiry != nil {
		return model.Invalid("expire_after_days", "must not be given together with expiry_rules, which has a rule with an empty prefix for the whole bucket")
	}
	if days := c.ExpireAfterDays; days != nil && (*days < 0 || *days > model.MaxExpireDays) {
		return model.Invalid("expire_after_days", "must be from 1 to %d days, or 0 to keep objects", model.MaxExpireDays)
	}
	if c.Expiry == nil {
		return nil
	}
	rules, err := model.ValidateExpiry("expiry_rules", *c.Expiry)
	c.Expiry = &rules
	return err
}

func (c BucketChange) changesExpiry() bool { return c.ExpireAfterDays != nil || c.Expiry != nil }

// expiry returns the rules of b after the change.
func (c BucketChange) expiry(b model.Bucket) model.Expiry {
	switch {
	case c.Expiry != nil:
		return *c.Expiry
	case c.ExpireAfterDays != nil:
		return b.Expiry.WithDays(*c.ExpireAfterDays)
	}
	return b.Expiry
}

// checkRules refuses an age that would be a rule too many beside those of b.
func (c BucketChange) checkRules(b model.Bucket) error {
	if c.ExpireAfterDays == nil || *c.ExpireAfterDays == 0 {
		return nil
	}
	if _, err := model.ValidateExpiry("expiry_rules", c.expiry(b)); err != nil {
		return model.Invalid("expire_after_days", "is a rule too many beside expiry_rules, which has at most %d of %d bytes in all: remove one first", model.MaxExpiryRules, model.MaxExpiryBytes)
	}
	return nil
}

// setExpiry changes the rules by which objects of b expire.
func (s *Service) setExpiry(b *model.Bucket, change BucketChange) {
	rules := change.expiry(*b)
	if now := s.core.RetentionClock(); b.Expiry.RemovesSooner(rules) && now.After(b.HistorySince) { // what has expired is gone for good
		b.HistorySince = now
	}
	b.Expiry, b.Lifecycle = rules, change.Lifecycle
}

// publicRights returns what everybody may do with b after the change.
func (c BucketChange) publicRights(b model.Bucket) model.PublicRights {
	return model.PublicRights{
		Read: either(c.Public, b.Public), Prefixes: either(c.PublicPrefixes, b.PublicPrefixes), List: either(c.PublicListing, b.PublicListing),
	}
}

// expiresSooner reports whether the change makes objects of b expire sooner.
func (c BucketChange) expiresSooner(b model.Bucket) bool { return c.expiry(b).Sooner(b.Expiry) }

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
	if c.Expiry != nil {
		call.Note("expiry_rules", fmt.Sprint(len(*c.Expiry)))
	}
}

// either returns what a change says, or what there is if it says nothing.
func either[T any](change *T, now T) T {
	if change != nil {
		return *change
	}
	return now
}
