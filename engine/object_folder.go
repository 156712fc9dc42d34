package engine

import (
	"encoding/base64"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// FolderEntry is an object, or where Object is nil a folder.
type FolderEntry = meta.FolderEntry

// BucketGet returns one bucket.
func (e *Engine) BucketGet(call *model.Call, id string) (model.Bucket, error) {
	return e.bucket(call, id)
}

// Folder returns a page of what lies in the folder prefix of a bucket, by
// name: "" is the bucket itself, others end with a slash.
func (e *Engine) Folder(call *model.Call, bucket, prefix string, page Page) (model.Bucket, List[FolderEntry], error) {
	b, err := e.bucket(call, bucket)
	if err != nil {
		return b, List[FolderEntry]{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(page.Cursor)
	if err != nil {
		return b, List[FolderEntry]{}, badCursor()
	}
	var list List[FolderEntry]
	err = e.meta.View(func(tx *meta.Tx) error {
		entries, more, err := tx.Folder(bucket, prefix, string(after), page.limit())
		list = newList(entries, more, func(f FolderEntry) string { return f.Key })
		return err
	})
	return b, list, err
}
