package access

import (
	"crypto/subtle"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Authenticate makes the call that of the key whose text this is, and notes
// the key's use. A text that is no key, or that of a revoked or expired one, is
// unauthorized; the latter's organization finds the attempt in its log.
func (s *Service) Authenticate(call *model.Call, text string) error {
	if !model.WellFormedKey(text) {
		return unauthorized()
	}
	key, err := s.keyByHash(model.HashKey(text))
	if errors.Is(err, meta.ErrNotFound) {
		return unauthorized()
	}
	if err != nil {
		return err
	}
	call.Organization = key.Organization
	call.Actor = model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}
	now := s.core.Clock()
	if !key.Usable(now) {
		return unauthorized()
	}
	call.Key = &key
	s.core.Audits.Touch(key.ID, core.KeyUse{At: now, IP: call.IP})
	return nil
}

func (s *Service) keyByHash(hash []byte) (model.Key, error) {
	key, err := s.core.Meta.CachedKey(hash)
	if err == nil && subtle.ConstantTimeCompare(key.Hash, hash) != 1 {
		return key, meta.ErrNotFound
	}
	return key, err
}

func unauthorized() error {
	return model.Errorf(model.CodeUnauthorized,
		"send a valid API key as \"Authorization: Bearer sk_live_…\": this one is missing, unknown, expired or revoked")
}

// Authorize checks that the caller may do the call's operation, with all the
// acts that it comes to: the scopes, or for what has none a person's role, then a
// key's dangerous-operations toggle, then the budgets.
func (s *Service) Authorize(call *model.Call) error {
	acts := call.Operation.Acts()
	if err := core.Permit(call, acts); err != nil {
		return err
	}
	var classes []model.RateClass
	for _, act := range acts {
		if act.Rate != model.RateNone {
			classes = append(classes, act.Rate)
		}
	}
	return s.core.Rates.TakeAll(call.Actor.ID, classes, s.core.Clock())
}

// Permit is Authorize without the budgets.
func (s *Service) Permit(call *model.Call) error { return core.Permit(call, call.Operation.Acts()) }
