package objects

import (
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DeletedError means that the version asked for is a delete marker.
type DeletedError struct{ Marker model.Object }

// Error implements error.
func (e *DeletedError) Error() string { return "deleted by the version " + e.Marker.VersionID() }

// ErrNoVersion means that a key has no version with that id.
var ErrNoVersion = errors.New("no such version")

// latest returns the latest version of a key, which may be a delete marker: from the journal's recent notes, which take
// precedence, or else from the metadata.
func (s *Service) latest(bucket, key string) (model.Object, error) {
	found, ok := s.recent.get(bucket, key)
	var object model.Object
	var err error
	switch {
	case ok && found.unknown:
		err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
			object, err = tx.LatestVersion(bucket, key)
			return err
		})
	case ok && found.deleted:
		err = meta.ErrNotFound
	case ok:
		return found.object, nil
	default:
		object, err = s.core.Meta.CachedObject(bucket, key)
	}
	if errors.Is(err, meta.ErrNotFound) {
		return object, noObject(key)
	}
	return object, err
}

// version returns the version of a key with that id, "" for the current one.
func (s *Service) version(bucket, key, id string) (object model.Object, err error) {
	if id == "" {
		return s.object(bucket, key)
	}
	view := s.core.Meta.View
	if recent, ok := s.recent.get(bucket, key); ok {
		if !recent.deleted && recent.object.VersionID() == id {
			return markerRefused(recent.object)
		}
		view = s.core.Meta.ViewFlushed
	}
	err = view(func(tx *meta.Tx) error {
		object, err = tx.ObjectVersion(bucket, key, id)
		return err
	})
	if errors.Is(err, meta.ErrNotFound) {
		return object, noVersion(key, id)
	}
	if err != nil {
		return object, err
	}
	return markerRefused(object)
}

// markerRefused refuses to read a delete marker.
func markerRefused(object model.Object) (model.Object, error) {
	if object.DeleteMarker {
		return object, &model.Error{Code: model.CodeValidation, Message: "version: this version is a delete marker, which has no content", Err: &DeletedError{object}}
	}
	return object, nil
}

func noVersion(key, id string) error {
	return &model.Error{Code: model.CodeNotFound, Message: "no version " + id + " of the object " + key, Err: ErrNoVersion}
}

// newVersion returns the id of a new version of a key at that time. It is greater than those of the versions that are
// kept, even if the clock was set back.
func (s *Service) newVersion(b model.Bucket, key string, at time.Time) string {
	version := core.FormatID("", s.core.IDs.Next(at))
	if b.Versioning == model.VersioningOff {
		return version
	}
	if latest, err := s.latest(b.ID, key); err == nil && version <= latest.Version {
		if id, err := ulid.Parse(strings.ToUpper(latest.Version)); err == nil {
			return core.FormatID("", s.core.IDs.Next(ulid.Time(id.Time()).Add(time.Millisecond)))
		}
	}
	return version
}

// VersionPage is a page of versions, and ListedVersion one of them.
type (
	VersionPage   = meta.VersionFolder
	ListedVersion = meta.Version
)

// Versions returns the versions of the keys that begin with prefix, in the order of the keys, the newest of each first.
func (s *Service) Versions(call *model.Call, bucket, prefix string, page core.Page) (core.List[ListedVersion], error) {
	w, err := s.core.Walk(call, model.ActionVersionList, page, bucket, prefix)
	if err != nil {
		return core.List[ListedVersion]{}, err
	}
	key, version, _ := strings.Cut(w.After, "\x00")
	found, err := s.VersionList(call, bucket, prefix, "", key, version, w.Limit)
	list := core.List[ListedVersion]{Items: found.Versions}
	if found.More {
		list.Next = w.CursorAt(found.LastKey + "\x00" + found.LastVersion)
	}
	return list, err
}

// VersionList is a page of the versions of a bucket in the order of their keys, the newest of each first, and of the
// folders that contain others. It starts after the version afterVersion of afterKey, or after all versions of afterKey
// if afterVersion is "".
func (s *Service) VersionList(call *model.Call, bucket, prefix, delimiter, afterKey, afterVersion string, limit int) (VersionPage, error) {
	if _, err := s.bucket(call, bucket); err != nil {
		return VersionPage{}, err
	}
	return meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (VersionPage, error) {
		if afterVersion == model.NullVersion {
			null, err := tx.ObjectVersion(bucket, afterKey, afterVersion)
			if err != nil && !errors.Is(err, meta.ErrNotFound) {
				return VersionPage{}, err
			}
			afterVersion = null.Version
		}
		return tx.ListVersions(bucket, prefix, delimiter, afterKey, afterVersion, limit)
	})
}
