package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ObjectList returns the objects of a bucket whose keys begin with prefix.
func (e *Engine) ObjectList(call *model.Call, bucket, prefix string, page Page) (List[ObjectView], error) {
	w, err := e.walk(call, model.ActionObjectList, page, bucket, prefix)
	if err != nil {
		return List[ObjectView]{}, err
	}
	b, err := e.bucket(call, bucket)
	if err != nil {
		return List[ObjectView]{}, err
	}
	var list List[ObjectView]
	err = e.meta.ViewFlushed(func(tx *meta.Tx) error {
		objects, more, err := tx.NewestObjects(bucket, prefix, w.after, w.limit)
		list = newList(w, e.objectViews(b, objects), more, func(v ObjectView) string { return v.Version })
		return err
	})
	return list, err
}

func (e *Engine) objectViews(b model.Bucket, objects []model.Object) []ObjectView {
	views := make([]ObjectView, len(objects))
	for i, o := range objects {
		views[i] = e.objectView(b, o)
	}
	return views
}

// Folder is a part of one level of a bucket, in the order of keys.
type Folder struct {
	List[ObjectView]
	// Prefixes are the folders among it, each ending with the delimiter.
	Prefixes []string
}

// ObjectFolder returns the objects directly below prefix, and the folders that
// others lie in: what their keys have up to the next delimiter.
func (e *Engine) ObjectFolder(call *model.Call, bucket, prefix, delimiter string, page Page) (Folder, error) {
	w, err := e.walk(call, model.ActionObjectList, page, bucket, prefix, delimiter)
	if err != nil {
		return Folder{}, err
	}
	b, err := e.bucket(call, bucket)
	if err != nil {
		return Folder{}, err
	}
	var folder Folder
	err = e.meta.ViewFlushed(func(tx *meta.Tx) error {
		found, err := tx.ListFolder(bucket, prefix, delimiter, w.after, w.limit)
		folder = Folder{List[ObjectView]{Items: e.objectViews(b, found.Objects)}, found.Prefixes}
		if found.More {
			folder.Next = w.cursorAt(found.Last)
		}
		return err
	})
	return folder, err
}
