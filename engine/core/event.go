package core

import (
	"holdfast/engine/model"
)

// Tell hands an event to whoever wants to know.
func (c *Core) Tell(event model.Event) {
	if c.Config.Observe == nil {
		return
	}
	event.ID, event.At = c.NewID(model.ResourceAuditEntry), c.Clock()
	c.Config.Observe(event)
}
