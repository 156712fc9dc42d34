package core

import (
	"holdfast/engine/model"
)

// Emit passes an event to Config.Observe.
func (c *Core) Emit(event model.Event) {
	if c.Config.Observe == nil {
		return
	}
	event.ID, event.At = c.NewID(model.ResourceAuditEntry), c.Clock()
	c.Config.Observe(event)
}
