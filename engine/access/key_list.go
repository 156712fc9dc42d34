package access

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyList returns the keys of the call's organization, revoked ones included.
func (s *Service) KeyList(call *model.Call, page core.Page) (core.List[model.Key], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionKeyList, (*meta.Tx).Keys, page,
		func(k model.Key) string { return k.ID })
}
