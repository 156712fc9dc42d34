package objects

import (
	"fmt"
	"maps"
	"time"

	"holdfast/engine/model"
)

// ObjectChange holds what is to change of what is stored with a version; nil leaves it unchanged.
type ObjectChange struct {
	Metadata, Tags                                map[string]string
	ContentType, CacheControl, ContentDisposition *string
	Retention                                     *Retention
	// Hold is the legal hold.
	Hold *bool
	// Bypass asks to weaken a retention in spite of governance.
	Bypass bool
}

// ObjectUpdate changes what is stored with a version, which keeps its bytes and its id. Of a locked version only the tags
// and the lock can change.
func (s *Service) ObjectUpdate(call *model.Call, name VersionName, change ObjectChange) error {
	if err := change.validate(s.core.LockClock()); err != nil {
		return err
	}
	change.note(call)
	return s.changeVersion(call, name, change.changesLock(), func(o *model.Object) error {
		if err := call.Match(o.PropertiesTag()); err != nil {
			return err
		}
		if change.changesContent() {
			if err := s.refuseLocked(call, *o, false); err != nil {
				return err
			}
			change.apply(o)
		}
		if change.Tags != nil {
			o.Tags = maps.Clone(change.Tags)
		}
		if change.changesLock() {
			return s.changeLock(call, o, change)
		}
		return nil
	})
}

// note records changes of the lock in the audit entry.
func (c ObjectChange) note(call *model.Call) {
	if r := c.Retention; r != nil && r.Mode == "" {
		call.Note("retention", "none")
	} else if r != nil {
		call.Note("retention", fmt.Sprintf("%s until %s", r.Mode, r.Until.UTC().Format(time.RFC3339)))
	}
	if c.Hold != nil {
		call.Note("legal_hold", fmt.Sprint(*c.Hold))
	}
}

func (c ObjectChange) validate(now time.Time) error {
	if err := c.Retention.validate(now); err != nil {
		return err
	}
	if err := model.ValidateMetadata("metadata", c.Metadata); err != nil {
		return err
	}
	if err := model.ValidateObjectTags("tags", c.Tags); err != nil {
		return err
	}
	for field, value := range map[string]*string{
		"content_type": c.ContentType, "cache_control": c.CacheControl, "content_disposition": c.ContentDisposition,
	} {
		if value == nil {
			continue
		}
		if err := model.ValidateStoredHeader(field, *value); err != nil {
			return err
		}
	}
	return nil
}

func (c ObjectChange) changesLock() bool { return c.Retention != nil || c.Hold != nil }

// changesContent reports whether more than the tags and the lock is to change.
func (c ObjectChange) changesContent() bool {
	return c.Metadata != nil || c.ContentType != nil || c.CacheControl != nil || c.ContentDisposition != nil
}

func (c ObjectChange) apply(o *model.Object) {
	a := model.Attributes{}
	if o.Attributes != nil {
		a = *o.Attributes // others may read what it points to
	}
	if c.Metadata != nil {
		a.Metadata = maps.Clone(c.Metadata)
	}
	for to, value := range map[*string]*string{&o.ContentType: c.ContentType, &a.CacheControl: c.CacheControl, &a.ContentDisposition: c.ContentDisposition} {
		if value != nil {
			*to = *value
		}
	}
	o.Attributes = &a
}
