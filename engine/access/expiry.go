package access

import (
	"errors"
	"fmt"

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
	return errors.Join(
		dropOver(s, (*meta.Tx).Devices, func(d model.DeviceAuthorization) (string, bool) { return d.ID, !now.Before(d.ExpiresAt) }),
		dropOver(s, (*meta.Tx).SetupLinks, func(l model.SetupLink) (string, bool) { return string(l.TokenHash), !now.Before(l.ExpiresAt) }),
		dropOver(s, (*meta.Tx).Sessions, func(it model.Session) (string, bool) { return it.TokenHash, !it.Usable(now) }),
	)
}

// dropOver removes the records of a table that are over. It looks for them without keeping others from writing: what is over
// stays so, or is a session that was used just then, which is read again.
func dropOver[T any](s *Service, table func(*meta.Tx) meta.Table[T], over func(T) (id string, over bool)) error {
	var ids []string
	if err := s.core.Meta.View(func(tx *meta.Tx) error {
		return table(tx).All(func(record T) error {
			if id, is := over(record); is {
				ids = append(ids, id)
			}
			return nil
		})
	}); err != nil || len(ids) == 0 {
		return err
	}
	return s.core.Meta.Update(func(tx *meta.Tx) error {
		for _, id := range ids {
			record, err := table(tx).Get(id)
			if err == nil {
				if _, is := over(record); is {
					err = table(tx).Delete(id)
				}
			}
			if err != nil && !errors.Is(err, meta.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}
