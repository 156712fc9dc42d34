package objects

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectList returns the objects of a bucket whose keys begin with prefix, newest first: one that is replaced between two pages is
// on neither.
func (s *Service) ObjectList(call *model.Call, bucket, prefix string, page core.Page) (core.List[ObjectView], error) {
	w, err := s.core.Walk(call, model.ActionObjectList, page, bucket, prefix)
	if err != nil {
		return core.List[ObjectView]{}, err
	}
	b, err := s.bucket(call, bucket)
	if err != nil {
		return core.List[ObjectView]{}, err
	}
	var list core.List[ObjectView]
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		objects, more, err := tx.NewestObjects(bucket, prefix, w.After, w.Limit)
		list = core.NewList(w, s.objectViews(b, objects), more, func(v ObjectView) string { return v.Version })
		return err
	})
	return list, err
}

// ObjectKeys returns up to limit objects and prefixes of a bucket in key order, starting after after, "" for the
// start. Without a delimiter there are no prefixes.
func (s *Service) ObjectKeys(call *model.Call, bucket, prefix, delimiter, after string, limit int) (meta.Folder, error) {
	if _, err := s.bucket(call, bucket); err != nil {
		return meta.Folder{}, err
	}
	return meta.Value(s.core.Meta.ViewFlushed, func(tx *meta.Tx) (meta.Folder, error) {
		return tx.ListFolder(bucket, prefix, delimiter, after, limit)
	})
}

func (s *Service) objectViews(b model.Bucket, objects []model.Object) []ObjectView {
	views := make([]ObjectView, len(objects))
	for i, o := range objects {
		views[i] = s.objectView(b, o)
	}
	return views
}

// Folder is a page of one level of a bucket, sorted by key.
type Folder struct {
	core.List[ObjectView]
	// Prefixes are the subfolders, each ending with the delimiter.
	Prefixes []string
}

// ObjectFolder returns the objects directly below prefix and the subfolders of
// the others: their keys up to the next delimiter. Without one it returns all
// objects in the order of keys.
func (s *Service) ObjectFolder(call *model.Call, bucket, prefix, delimiter string, page core.Page) (Folder, error) {
	w, err := s.core.Walk(call, model.ActionObjectList, page, bucket, prefix, delimiter)
	if err != nil {
		return Folder{}, err
	}
	b, err := s.bucket(call, bucket)
	if err != nil {
		return Folder{}, err
	}
	var folder Folder
	err = s.core.Meta.ViewFlushed(func(tx *meta.Tx) error {
		found, err := tx.ListFolder(bucket, prefix, delimiter, w.After, w.Limit)
		folder = Folder{core.List[ObjectView]{Items: s.objectViews(b, found.Objects)}, found.Prefixes}
		if found.More {
			folder.Next = w.CursorAt(found.Last)
		}
		return err
	})
	return folder, err
}
