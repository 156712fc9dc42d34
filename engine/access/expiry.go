package access

import (
	"errors"
	"fmt"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// ExpireKeys audits the expiry of each key once. Expired keys are refused
// independently of this. While the clock is not trusted it audits none: the real
// expiry would then never be.
func (s *Service) ExpireKeys() error {
	var expired []model.Key
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		return tx.Keys().All(func(k model.Key) error {
			if k.ExpiresAt != nil && s.core.MayRemove(*k.ExpiresAt) && k.RevokedAt == nil && !k.ExpiryAudited {
				expired = append(expired, k)
			}
			return nil
		})
	}); err != nil {
		return err
	}
	for _, k := range expired {
		call := s.core.System(model.ActionKeyExpire, k.Organization, model.Resource{Type: model.ResourceKey, ID: k.ID, Name: k.Name})
		if err := s.core.Change(call, func(tx *meta.Tx) error {
			return tx.Keys().Change(k.ID, func(k *model.Key) { k.ExpiryAudited = true })
		}); err != nil {
			return fmt.Errorf("audit an expiry: %w", err)
		}
	}
	return nil
}

// SweepCodes removes device authorizations, set-up links and sessions that can no longer
// be used.
func (s *Service) SweepCodes() error {
	now := s.core.Clock()
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		return errors.Join(
			core.DropWhere(tx.Devices(), func(d model.DeviceAuthorization) (string, bool) { return d.ID, !now.Before(d.ExpiresAt) }),
			core.DropWhere(tx.SetupLinks(), func(l model.SetupLink) (string, bool) { return string(l.TokenHash), !now.Before(l.ExpiresAt) }),
			core.DropWhere(tx.Sessions(), func(it model.Session) (string, bool) { return it.TokenHash, !it.Usable(now) }),
		)
	})
}
