package access

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyGet returns one key of the call's organization.
func (s *Service) KeyGet(call *model.Call, id string) (model.Key, error) {
	call.Resource = model.Resource{Type: model.ResourceKey, ID: id}
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) (model.Key, error) { return keyOf(tx, call.Organization, id) })
}

// keyOf returns the key with id if it belongs to the organization.
func keyOf(tx *meta.Tx, organization, id string) (model.Key, error) {
	key, err := tx.Keys().Get(id)
	if errors.Is(err, meta.ErrNotFound) || err == nil && key.Organization != organization {
		return model.Key{}, model.NotFound(model.ResourceKey, id)
	}
	return key, err
}
