package core

import (
	"errors"

	"holdfast/engine/meta"
)

// DropDamaged reports the damaged metadata records that were met since the last call, and
// removes the events, deliveries and webhooks among them: nothing else depends on those.
func (c *Core) DropDamaged() error {
	var errs []error
	for _, damaged := range c.Meta.Damaged() {
		dropped, err := meta.Value(c.Meta.Update, func(tx *meta.Tx) (bool, error) { return tx.DropDamaged(damaged) })
		switch {
		case err != nil:
			c.Meta.Redamaged(damaged)
		case dropped:
			c.Meta.Undamaged(damaged)
		}
		errs = append(errs, err)
		c.Log.Error("a metadata record is damaged", "table", damaged.Table, "id", damaged.ID, "removed", dropped)
	}
	return errors.Join(errs...)
}
