package access

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyFilter selects keys. An empty field selects all; keys have no project.
type KeyFilter struct {
	core.Filter
	Preset model.Preset
	Source string
}

// KeyList returns the keys of the call's organization that match the filter,
// revoked ones included.
func (s *Service) KeyList(call *model.Call, filter KeyFilter, page core.Page) (core.List[model.Key], error) {
	return core.ListRecords(s.core, s.core.Meta.View, call, model.ActionKeyList, (*meta.Tx).Keys, page,
		core.Select(filter, func(k model.Key) bool {
			return filter.Admits("", k.Name, k.CreatedAt) && core.Equals(filter.Preset, k.Preset) && core.Equals(filter.Source, k.Source)
		}))
}
