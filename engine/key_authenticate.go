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

// Authorize checks that the caller may do the call's operation: its scope, or
// for what has none a person's role, then a key's dangerous-operations toggle,
// then the budget.
func (e *Engine) Authorize(call *model.Call) error {
	if err := permit(call, call.Operation); err != nil {
		return err
	}
	return e.rates.take(call.Actor.ID, call.Operation.Rate, e.clock())
}

// permit is Authorize without the budget, for an operation that the call's own
// comes to.
func permit(call *model.Call, op model.Operation) error {
	if call.IsPerson() {
		return call.Role.Allows(op)
	}
	if op.Scope == "" {
		return nil
	}
	if !call.Holds(op.Scope) {
		return model.Errorf(model.CodeInsufficientScope, "this key lacks the scope %s", op.Scope)
	}
	if op.Destructive && call.Key != nil && !call.Key.AllowDangerous {
		return model.Errorf(model.CodeDangerousNotAllowed,
			"this deletes data: the key's dangerous-operations toggle is off, and a person must turn it on")
	}
	return nil
}
