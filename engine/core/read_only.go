package core

import (
	"holdfast/engine/model"
)

// SetReadOnly makes the appliance refuse every change from now on, with a message that
// says why. It stays so until the appliance ends. It waits for the commits that were checked before.
func (c *Core) SetReadOnly(message string) {
	c.readOnly.Store(&message)
	c.authority.Lock() // those who come after see the message
	defer c.authority.Unlock()
}

// ReadOnly returns the error for a change on a read-only appliance, nil on every other.
func (c *Core) ReadOnly() error {
	if message := c.readOnly.Load(); message != nil {
		return model.Errorf(model.CodeReadOnly, "%s", *message)
	}
	return nil
}

// refuseReadOnly refuses a change on a read-only appliance. People can still sign in and out,
// and what the appliance records of itself is recorded.
func (c *Core) refuseReadOnly(call *model.Call) error {
	switch call.Operation.Action {
	case model.ActionSessionCreate, model.ActionSignOut, model.ActionSignOutAll, model.ActionSessionEnd, model.ActionSessionEndAll,
		model.ActionInstanceDown, model.ActionInstanceUp, model.ActionInstanceMoved, model.ActionApplianceFenced, model.ActionMetadataBackup:
		return nil
	}
	return c.ReadOnly()
}
