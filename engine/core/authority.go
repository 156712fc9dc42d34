package core

import (
	"errors"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// WithAuthority calls commit if the caller may still act: a request whose body takes long may outlast its key, its person,
// the session, or the time in which the appliance accepts changes. Once ChangeAuthority has returned, nothing is committed
// any more for those that it has ended, and once SetReadOnly has, nothing for anybody.
func (c *Core) WithAuthority(call *model.Call, commit func() error) error {
	c.authority.RLock()
	defer c.authority.RUnlock()
	if err := c.refuseReadOnly(call); err != nil {
		return err
	}
	if err := c.CheckAuthority(call); err != nil {
		return err
	}
	return commit()
}

// ChangeAuthority is Change for what gives, changes or ends the authority of keys, people and sessions. It checks a caller
// with a key or a session again in the transaction, and gives the call that key and the person's role as they are now. It
// waits for the commits of callers that were checked before.
func (c *Core) ChangeAuthority(call *model.Call, fn func(*meta.Tx) error) error {
	if err := c.Change(call, func(tx *meta.Tx) error {
		if err := c.RenewAuthority(tx, call); err != nil {
			return err
		}
		return fn(tx)
	}); err != nil {
		return err
	}
	c.authority.Lock() // those who come after see the change
	defer c.authority.Unlock()
	return nil
}

// RenewAuthority reads the caller's key, or the person of its session, again, and returns an error if it may not act any
// more. It is for the transaction that begins what a request waited for: a claim, a program to be installed, an archive.
func (c *Core) RenewAuthority(tx *meta.Tx, call *model.Call) error {
	switch {
	case call.Key != nil:
		key, err := c.stillUsable(tx.Keys().Get(call.Key.ID))
		if err != nil {
			return err
		}
		call.Key = &key
	case call.Session != "":
		person, err := c.checkPerson(tx, call)
		if err != nil {
			return err
		}
		call.Role = person.Role
	}
	return nil
}

// CheckAuthority returns an error if the caller's key, person or session has ended since the call began, or the person's
// role no longer permits the operation. The scopes of a key do not change.
func (c *Core) CheckAuthority(call *model.Call) error {
	if call.Key != nil {
		_, err := c.stillUsable(c.Meta.CachedKeyByID(call.Key.ID))
		return err
	}
	if !call.IsPerson() {
		return nil
	}
	return c.Meta.View(func(tx *meta.Tx) error {
		_, err := c.checkPerson(tx, call)
		return err
	})
}

// stillUsable returns a key that was read again, or the error for one that is not usable any more.
func (c *Core) stillUsable(key model.Key, err error) (model.Key, error) {
	if errors.Is(err, meta.ErrNotFound) || err == nil && !key.Usable(c.Clock()) {
		return key, authorityEnded("the key was revoked or has expired")
	}
	return key, err
}

// checkPerson returns the caller as it is now, if it is a person who may still perform the operation.
func (c *Core) checkPerson(tx *meta.Tx, call *model.Call) (model.User, error) {
	if call.Session != "" {
		session, err := tx.Sessions().Get(call.Session)
		if errors.Is(err, meta.ErrNotFound) || err == nil && !session.Usable(c.Clock()) {
			return model.User{}, authorityEnded("the session has ended")
		}
		if err != nil {
			return model.User{}, err
		}
	}
	user, err := tx.Users().Get(call.Actor.ID)
	if errors.Is(err, meta.ErrNotFound) {
		return user, authorityEnded("the person's account was removed")
	}
	if err != nil {
		return user, err
	}
	return user, user.Role.Allows(call.Operation)
}

func authorityEnded(why string) error {
	return model.Errorf(model.CodeUnauthorized, "%s while this request was sent: nothing was changed", why)
}
