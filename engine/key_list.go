package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyList returns the keys of the call's organization, revoked ones included.
func (e *Engine) KeyList(call *model.Call, page Page) (List[model.Key], error) {
	return listRecords(e, e.meta.View, call, model.ActionKeyList, (*meta.Tx).Keys, page,
		func(k model.Key) string { return k.ID })
}

// listRecords returns a page of those of a table's records that belong to the
// call's organization, read with View or ViewFlushed.
func listRecords[T any](
	e *Engine, view func(func(*meta.Tx) error) error, call *model.Call, list model.Action, table func(*meta.Tx) meta.Table[T], page Page, id func(T) string,
) (List[T], error) {
	w, err := e.walk(call, list, page)
	if err != nil {
		return List[T]{}, err
	}
	return walkRecords(view, w, table, meta.ByOrganization, call.Organization, id)
}

// walkRecords returns a page of a table's records under one key of an index.
func walkRecords[T any](
	view func(func(*meta.Tx) error) error, w walk, table func(*meta.Tx) meta.Table[T], index, key string, id func(T) string,
) (list List[T], err error) {
	err = view(func(tx *meta.Tx) error {
		records, more, err := table(tx).Newest(index, meta.Key(key), w.after, w.limit)
		list = newList(w, records, more, id)
		return err
	})
	return list, err
}
