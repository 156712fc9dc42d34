package access

import (
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyRevoke revokes a key of the call's organization immediately. Revoking it again
// changes nothing.
func (s *Service) KeyRevoke(call *model.Call, id string) (model.Key, error) {
	var key model.Key
	call.Resource = model.Resource{Type: model.ResourceKey, ID: id}
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if _, err := keyOf(tx, call.Organization, id); err != nil {
			return err
		}
		var err error
		key, err = revokeKey(tx, id, s.core.Clock())
		return err
	})
	return key, err
}

func revokeKey(tx *meta.Tx, id string, at time.Time) (model.Key, error) {
	return tx.Keys().Update(id, func(k *model.Key) error {
		if k.RevokedAt == nil {
			k.RevokedAt = &at
		}
		return nil
	})
}
