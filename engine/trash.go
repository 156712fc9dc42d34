package engine

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Emptied is how much was removed from the trash.
type Emptied struct{ Databases, Buckets, Objects int }

// TrashEmpty permanently removes what the call's organization has deleted, and returns how much, even with an error.
// Each database and bucket has an audit entry of its own.
func (e *Engine) TrashEmpty(call *model.Call) (removed Emptied, err error) {
	var errs [3]error
	removed.Databases, errs[0] = e.Databases.EmptyTrash(call)
	removed.Buckets, errs[1] = e.Objects.EmptyBuckets(call)
	removed.Objects, errs[2] = e.Objects.EmptyObjects(call)
	e.Objects.UnlinkSoon()
	if err = errors.Join(errs[:]...); err != nil {
		return removed, err
	}
	if call.Audited = removed != (Emptied{}); call.Audited {
		return removed, nil
	}
	return removed, e.Core.Change(call, func(*meta.Tx) error { return nil })
}
