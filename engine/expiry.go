package engine

import (
	"fmt"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// expireTrash removes a deleted database whose time to come back is over.
func (e *Engine) expireTrash(db model.Database) error {
	return e.purgeClaimed(e.system(model.ActionTrashExpire, db.Organization, databaseResource(db)), db)
}

// expireKeys audits the expiry of keys, each once. That an expired key is
// refused does not wait for this.
func (e *Engine) expireKeys() error {
	var expired []model.Key
	now := e.clock()
	if err := e.meta.View(func(tx *meta.Tx) error {
		return tx.Keys().All(func(k model.Key) error {
			if k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) && k.RevokedAt == nil && !k.ExpiryAudited {
				expired = append(expired, k)
			}
			return nil
		})
	}); err != nil {
		return err
	}
	for _, k := range expired {
		call := e.system(model.ActionKeyExpire, k.Organization, model.Resource{Type: model.ResourceKey, ID: k.ID, Name: k.Name})
		if err := e.change(call, func(tx *meta.Tx) error {
			_, err := tx.Keys().Update(k.ID, func(k *model.Key) error {
				k.ExpiryAudited = true
				return nil
			})
			return err
		}); err != nil {
			return fmt.Errorf("audit an expiry: %w", err)
		}
	}
	return nil
}
