package access

import (
	"slices"
	"strconv"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// KeyChange holds the properties of a key to change; nil leaves one unchanged.
type KeyChange struct {
	Name      *string
	ExpiresAt *time.Time // zero means never
	// AllowDangerous is here to be refused with a reason: see KeyAllowDangerous.
	AllowDangerous *bool
}

// KeyUpdate changes a key of the call's organization that is neither revoked nor expired.
// A caller that is a key can only make keys expire sooner: otherwise it could prolong one
// that may do more than itself.
func (s *Service) KeyUpdate(call *model.Call, id string, change KeyChange) (model.Key, error) {
	if change.Name != nil {
		if err := model.ValidateLabel("name", *change.Name); err != nil {
			return model.Key{}, err
		}
	}
	if err := s.inFuture(change.ExpiresAt); err != nil {
		return model.Key{}, err
	}
	return s.changeKey(call, id, func(k *model.Key) error {
		if change.AllowDangerous != nil {
			return noToggleByKey()
		}
		if change.Name != nil {
			call.Note("name", *change.Name)
			k.Name = *change.Name
		}
		return change.setExpiry(call, k)
	})
}

func (change KeyChange) setExpiry(call *model.Call, k *model.Key) error {
	until := change.ExpiresAt
	if until == nil {
		return nil
	}
	never := until.IsZero()
	if call.Key != nil && (never || k.ExpiresAt != nil && until.After(*k.ExpiresAt)) {
		return model.Errorf(model.CodeForbidden,
			"expires_at: a key can make keys expire sooner, and not later; a person can, on the key's page in the console")
	}
	if never {
		call.Note("expires_at", "never")
		k.ExpiresAt = nil
		return nil
	}
	call.Note("expires_at", until.UTC().Format(time.RFC3339))
	k.ExpiresAt = until
	return nil
}

// inFuture refuses an expiry that is over. Zero means never.
func (s *Service) inFuture(expiresAt *time.Time) error {
	if expiresAt == nil || expiresAt.IsZero() || expiresAt.After(s.core.Clock()) {
		return nil
	}
	return model.Invalid("expires_at", "must be in the future")
}

// KeyAllowDangerous turns the dangerous-operations toggle of a key of the call's
// organization on or off, starting with the key's next request. Only people and the
// operator can: the API has no route to it.
func (s *Service) KeyAllowDangerous(call *model.Call, id string, allow bool) (model.Key, error) {
	call.Note("allow_dangerous", strconv.FormatBool(allow))
	return s.changeKey(call, id, func(k *model.Key) error {
		if call.Key != nil {
			return noToggleByKey()
		}
		if allow && !slices.ContainsFunc(k.Scopes, model.Scope.Destroys) {
			return model.Invalid("allow_dangerous", "the key has no permission that deletes: make another with full_access or the scopes it needs")
		}
		k.AllowDangerous = allow
		return nil
	})
}

// changeKey changes a usable key of the call's organization that is as the call expects it.
func (s *Service) changeKey(call *model.Call, id string, change func(*model.Key) error) (model.Key, error) {
	var key model.Key
	call.Resource = model.Resource{Type: model.ResourceKey, ID: id}
	err := s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		found, err := keyOf(tx, call.Organization, id)
		if err != nil {
			return err
		}
		call.Resource.Name = found.Name
		if !found.Usable(s.core.Clock()) {
			return model.Errorf(model.CodeConflict, "the key is revoked or has expired: make another")
		}
		if err := call.Match(found.Tag()); err != nil {
			return err
		}
		key, err = tx.Keys().Update(id, change)
		return err
	})
	return key, err
}
