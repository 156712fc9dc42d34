package objects

import (
	"maps"

	"holdfast/engine/model"
)

// ObjectChange holds what is to change of what is stored with a version; nil leaves it unchanged.
type ObjectChange struct {
	Metadata, Tags                                map[string]string
	ContentType, CacheControl, ContentDisposition *string
}

// ObjectUpdate changes what is stored with a version, which keeps its bytes and its id. Of a locked version only the tags
// can change.
func (s *Service) ObjectUpdate(call *model.Call, name VersionName, change ObjectChange) error {
	if err := change.validate(); err != nil {
		return err
	}
	return s.changeVersion(call, name, false, func(o *model.Object) error {
		if change.Tags != nil {
			o.Tags = maps.Clone(change.Tags)
		}
		if !change.changesContent() {
			return nil
		}
		if err := s.refuseLocked(call, *o, false); err != nil {
			return err
		}
		change.apply(o)
		return nil
	})
}

func (c ObjectChange) validate() error {
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

// changesContent reports whether more than the tags is to change.
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
