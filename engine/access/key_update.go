package access

import (
	"slices"
	"strconv"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyAllowDangerous turns the dangerous-operations toggle of a key of the call's
// organization on or off, starting with the key's next request. Only people and the
// operator can call it: the API has no route to it.
func (s *Service) KeyAllowDangerous(call *model.Call, id string, allow bool) (model.Key, error) {
	var key model.Key
	call.Resource = model.Resource{Type: model.ResourceKey, ID: id}
	call.Note("allow_dangerous", strconv.FormatBool(allow))
	err := s.core.Change(call, func(tx *meta.Tx) error {
		found, err := keyOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		call.Resource.Name = found.Name
		if !found.Usable(s.core.Clock()) {
			return model.Errorf(model.CodeConflict, "the key is revoked or has expired: make another")
		}
		if allow && !slices.ContainsFunc(found.Scopes, model.Scope.Destroys) {
			return model.Invalid("allow_dangerous", "the key has no permission that deletes: make another with full_access or the scopes it needs")
		}
		key, err = tx.Keys().Update(id, func(k *model.Key) error {
			k.AllowDangerous = allow
			return nil
		})
		return err
	})
	return key, err
}
