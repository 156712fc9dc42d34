package access

import (
	"slices"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// NewKey describes a key to create.
type NewKey struct {
	Name           string
	Preset         model.Preset  // if Scopes is empty
	Scopes         []model.Scope // individual scopes instead of a preset
	AllowDangerous bool
	ExpiresIn      time.Duration // 0 means never
	ExpiresAt      *time.Time    // in place of ExpiresIn
	Source         string
}

// KeyCreate creates a key in the call's organization. The returned text is the only
// copy. A caller that is a key gives at most what it has.
func (s *Service) KeyCreate(call *model.Call, in NewKey) (model.Secret, model.Key, error) {
	err := in.validate()
	if err == nil {
		err = s.inFuture(in.ExpiresAt)
	}
	if err != nil {
		return model.Secret{}, model.Key{}, err
	}
	if err := s.core.ClaimIdempotencyKey(call); err != nil {
		return model.Secret{}, model.Key{}, err
	}
	secret, key := s.mintKey(call, in)
	call.Resource = model.Resource{Type: model.ResourceKey, ID: key.ID, Name: key.Name}
	call.Note("preset", string(key.Preset))
	err = s.core.ChangeAuthority(call, func(tx *meta.Tx) error {
		if call.Key != nil {
			if err := withinMaker(*call.Key, &key); err != nil {
				return err
			}
		}
		return s.insertKey(tx, key)
	})
	if err != nil {
		return model.Secret{}, model.Key{}, err
	}
	return secret, key, nil
}

// insertKey stores a key, unless its organization has as many as it can have. Where revoked and expired keys are among
// those, the new one replaces the first of them to end.
func (s *Service) insertKey(tx *meta.Tx, key model.Key) error {
	owner := meta.Key(key.Organization)
	if tx.Keys().HasAtLeast(meta.ByOrganization, owner, model.MaxKeys) {
		all, err := core.AllBy(tx.Keys(), meta.ByOrganization, owner)
		if err == nil {
			err = s.makeRoom(tx, all)
		}
		if err != nil {
			return err
		}
	}
	return tx.Keys().Insert(key)
}

// makeRoom removes the keys that ended first, until an organization has fewer than MaxKeys. It returns an error if
// that many are usable. A key whose expiry is not in the audit log yet stays until it is.
func (s *Service) makeRoom(tx *meta.Tx, all []model.Key) error {
	now := s.core.Clock()
	ended := slices.DeleteFunc(slices.Clone(all), func(k model.Key) bool { return k.Usable(now) })
	if len(all)-len(ended) >= model.MaxKeys {
		return model.Errorf(model.CodeForbidden, "an organization can have %d API keys; revoke one first", model.MaxKeys)
	}
	ended = slices.DeleteFunc(ended, func(k model.Key) bool { return k.RevokedAt == nil && !k.ExpiryAudited })
	slices.SortFunc(ended, func(a, b model.Key) int { return a.EndedAt().Compare(b.EndedAt()) })
	for _, k := range ended[:min(len(ended), len(all)-model.MaxKeys+1)] {
		if err := tx.Keys().Delete(k.ID); err != nil {
			return err
		}
	}
	return nil
}

// mintKey makes a key's text and its record, and stores neither of them.
func (s *Service) mintKey(call *model.Call, in NewKey) (model.Secret, model.Key) {
	secret := model.FormatKey(core.RandomBytes())
	now := s.core.Clock()
	key := model.Key{
		ID: s.core.NewID(model.ResourceKey), Organization: call.Organization, Name: in.Name,
		Preview: model.PreviewKey(secret), Hash: model.HashKey(secret.Reveal()),
		Scopes: in.Scopes, Preset: model.PresetCustom, AllowDangerous: in.AllowDangerous,
		Source: in.Source, CreatedAt: now, CreatedBy: call.Actor,
	}
	if len(in.Scopes) == 0 {
		key.Scopes, key.Preset = in.Preset.Scopes(), in.Preset
	}
	key.ExpiresAt = in.ExpiresAt
	if in.ExpiresIn > 0 {
		expires := now.Add(in.ExpiresIn)
		key.ExpiresAt = &expires
	}
	return secret, key
}

func (in NewKey) validate() error {
	if err := model.ValidateLabel("name", in.Name); err != nil {
		return err
	}
	if len(in.Scopes) == 0 {
		_, err := model.ParsePreset("preset", string(in.Preset))
		return err
	}
	if in.Preset != "" {
		return model.Invalid("scopes", "cannot be given together with a preset")
	}
	return nil
}
