package access

import (
	"crypto/subtle"
	"errors"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Authenticate attributes the call to the key with this text, and records the key's use.
// An unknown, revoked or expired key is unauthorized; for the latter two, the attempt
// appears in the log of the key's organization.
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
	if !s.attribute(call, key) {
		return unauthorized()
	}
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

// Authorize checks that the caller may perform the call's operation and every act that
// it includes: first the scopes, or a person's role for an operation without a scope,
// then a key's dangerous-operations toggle, then the budgets, whose state it notes in
// the call.
func (s *Service) Authorize(call *model.Call) error {
	acts := call.Operation.Acts()
	if err := core.Permit(call, acts); err != nil {
		return err
	}
	if call.Operation.Changes() {
		if err := s.core.ReadOnly(); err != nil {
			return err
		}
	}
	var classes []model.RateClass
	for _, act := range acts {
		if act.Rate != model.RateNone {
			classes = append(classes, act.Rate)
		}
	}
	owner := call.Actor.ID
	if call.Key != nil {
		owner = call.Key.BudgetOwner()
	}
	err := s.core.Rates.TakeAll(owner, classes, s.core.Clock())
	call.Budgets = s.core.Rates.State(owner, classes, s.core.Clock())
	return err
}

// Permit is Authorize without the rate limits.
func (s *Service) Permit(call *model.Call) error { return core.Permit(call, call.Operation.Acts()) }
