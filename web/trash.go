package web

import (
	"cmp"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/objects"
)

// trashData is what trash.html shows: the newest of each kind.
type trashData struct {
	Databases core.List[model.Database]
	Buckets   core.List[model.TrashedBucket]
	Objects   core.List[model.TrashedObject]
}

func (req *request) trash(cause error) (answer, error) {
	var data trashData
	var errs [3]error
	page := core.Page{Limit: core.MaxLimit}
	data.Databases, errs[0] = req.engine.Databases.TrashList(req.call, core.Filter{}, page)
	data.Buckets, errs[1] = req.engine.Objects.TrashBucketList(req.call, core.Filter{}, page)
	data.Objects, errs[2] = req.engine.Objects.TrashObjectList(req.call, objects.TrashFilter{}, page)
	return answer{page: "trash.html", title: "Trash", data: data}, cmp.Or(cause, errs[0], errs[1], errs[2])
}

func (req *request) trashRestore() (answer, error) {
	_, err := req.engine.Databases.TrashRestore(req.r.Context(), req.call, req.id())
	return done("/trash", "restored"), err
}

func (req *request) trashBucketRestore() (answer, error) {
	b, err := req.engine.Objects.TrashBucketRestore(req.r.Context(), req.call, req.id())
	if b.ExpiryOff {
		return done("/trash", "restored_expiry_off"), err
	}
	return done("/trash", "restored"), err
}

func (req *request) trashObjectRestore() (answer, error) {
	_, err := req.engine.Objects.TrashObjectRestore(req.r.Context(), req.call, req.id())
	return done("/trash", "restored"), err
}

func (req *request) trashPurge() (answer, error) {
	return done("/trash", "purged"), req.confirmed(func() error { return req.engine.Databases.TrashPurge(req.call, req.id()) })
}

func (req *request) trashBucketPurge() (answer, error) {
	return done("/trash", "purged"), req.confirmed(func() error { return req.engine.Objects.TrashBucketPurge(req.call, req.id()) })
}

func (req *request) trashObjectPurge() (answer, error) {
	return done("/trash", "purged"), req.confirmed(func() error { return req.engine.Objects.TrashObjectPurge(req.call, req.id()) })
}

// forGood is what a person types to remove something from the trash: names in it need not
// be unique.
const forGood = "for good"

// confirmed calls remove if the user typed that it is meant.
func (req *request) confirmed(remove func() error) error {
	if err := req.confirm(forGood); err != nil {
		return err
	}
	return remove()
}

// trashed is a row of the trash, for its buttons.
type trashed struct{ Kind, ID, Name, Word string }

func newTrashed(kind, id, name string) trashed { return trashed{kind, id, name, forGood} }
