package core

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// WithAuthority calls commit if the caller may still act: a request whose body takes long may outlast its key, its person
// or the session. Once ChangeAuthority has returned, nothing is committed any more for those that it has ended.
func (c *Core) WithAuthority(call *model.Call, commit func() error) error {
	c.authority.RLock()
	defer c.authority.RUnlock()
	if err := c.checkAuthority(call); err != nil {
		return err
	}
	return commit()
}

// ChangeAuthority is Change for what may end a key, a person's role or a session. It waits for the commits of callers
// that were checked before.
func (c *Core) ChangeAuthority(call *model.Call, fn func(*meta.Tx) error) error {
	if err := c.Change(call, fn); err != nil {
		return err
	}
	c.authority.Lock() // those who come after see the change
	defer c.authority.Unlock()
	return nil
}

// checkAuthority returns an error if the caller's key, person or session has ended since the call began, or the person's
// role no longer permits the operation. The scopes of a key do not change.
func (c *Core) checkAuthority(call *model.Call) error {
	if call.Key != nil {
		key, err := c.Meta.CachedKeyByID(call.Key.ID)
		if errors.Is(err, meta.ErrNotFound) || err == nil && !key.Usable(c.Clock()) {
			return authorityEnded("the key was revoked or has expired")
		}
		return err
	}
	if !call.IsPerson() {
		return nil
	}
	return c.Meta.View(func(tx *meta.Tx) error { return c.checkPerson(tx, call) })
}

func (c *Core) checkPerson(tx *meta.Tx, call *model.Call) error {
	if call.Session != "" {
		session, err := tx.Sessions().Get(call.Session)
		if errors.Is(err, meta.ErrNotFound) || err == nil && !session.Usable(c.Clock()) {
			return authorityEnded("the session has ended")
		}
		if err != nil {
			return err
		}
	}
	user, err := tx.Users().Get(call.Actor.ID)
	if errors.Is(err, meta.ErrNotFound) {
		return authorityEnded("the person's account was removed")
	}
	if err != nil {
		return err
	}
	return user.Role.Allows(call.Operation)
}

func authorityEnded(why string) error {
	return model.Errorf(model.CodeUnauthorized, "%s while this request was sent: nothing was changed", why)
}
