package engine

import (
	"crypto/subtle"
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Authenticate makes the call that of the key whose text this is, and notes
// the key's use. A text that is no key, or that of a revoked or expired one, is
// unauthorized; the latter's organization finds the attempt in its log.
func (e *Engine) Authenticate(call *model.Call, text string) error {
	if !model.WellFormedKey(text) {
		return unauthorized()
	}
	key, err := e.keyByHash(model.HashKey(text))
	if errors.Is(err, meta.ErrNotFound) {
		return unauthorized()
	}
	if err != nil {
		return err
	}
	call.Organization = key.Organization
	call.Actor = model.Actor{Type: model.ActorKey, ID: key.ID, Name: key.Name}
	now := e.clock()
	if !key.Usable(now) {
		return unauthorized()
	}
	call.Key = &key
	e.audits.touch(key.ID, keyUse{at: now, ip: call.IP})
	return nil
}

func (e *Engine) keyByHash(hash []byte) (model.Key, error) {
	key, err := e.meta.SharedKey(hash)
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
func (e *Engine) Authorize(call *model.Call) error {
	acts := call.Operation.Acts()
	if err := permit(call, acts); err != nil {
		return err
	}
	var classes []model.RateClass
	for _, act := range acts {
		if act.Rate != model.RateNone {
			classes = append(classes, act.Rate)
		}
	}
	return e.rates.takeAll(call.Actor.ID, classes, e.clock())
}

// Permit is Authorize without the budgets.
func (e *Engine) Permit(call *model.Call) error { return permit(call, call.Operation.Acts()) }

// permit checks that the caller may do all of acts.
func permit(call *model.Call, acts []model.Operation) error {
	for _, act := range acts {
		if call.IsPerson() {
			if err := call.Role.Allows(act); err != nil {
				return err
			}
		} else if act.Scope != "" && !call.Holds(act.Scope) {
			return model.Errorf(model.CodeInsufficientScope, "this key lacks the scope %s", act.Scope)
		}
	}
	for _, act := range acts {
		if act.Destructive && call.Key != nil && !call.Key.AllowDangerous {
			return model.Errorf(model.CodeDangerousNotAllowed,
				"this deletes data: the key's dangerous-operations toggle is off, and a person must turn it on")
		}
	}
	return nil
}
