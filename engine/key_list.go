package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyList returns the keys of the call's organization, revoked ones included.
func (e *Engine) KeyList(call *model.Call, page Page) (List[model.Key], error) {
	return listRecords(e, (*meta.Tx).Keys, meta.ByOrganization, call.Organization, page,
		func(k model.Key) string { return k.ID })
}

// listRecords returns a page of a table's records under one key of an index.
func listRecords[T any](
	e *Engine, table func(*meta.Tx) meta.Table[T], index, key string, page Page, id func(T) string,
) (List[T], error) {
	after, err := page.after()
	if err != nil {
		return List[T]{}, err
	}
	var list List[T]
	err = e.meta.View(func(tx *meta.Tx) error {
		records, more, err := table(tx).Newest(index, meta.Key(key), after, page.limit())
		list = newList(records, more, id)
		return err
	})
	return list, err
}
