package importer

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// checkRerouted refuses to follow partitions whose rows are in others here, unless the source publishes their changes as
// those of their root, which routes them.
func (c *copying) checkRerouted(context.Context) error {
	if len(c.rerouted) == 0 || c.follow.publication.viaRoot {
		return nil
	}
	var names []string
	for _, r := range c.rerouted {
		names = append(names, r.table.String())
	}
	name := quoteName(c.follow.Publication)
	return model.Invalid(PublicationField, "rows of the partitions %s belong to other partitions here, where enums hash or text sorts differently: "+
		"run in the source's database ALTER PUBLICATION %s SET (publish_via_partition_root = true); (from PostgreSQL 13 on), and start the import again",
		few(names), oneLine(name))
}

// planCutover reads what a cutover needs besides the changes, within the snapshot.
func (c *copying) planCutover(ctx context.Context) (p Plan, err error) {
	p = c.plan()
	if p.Comment, err = c.readComment(ctx); err != nil {
		return p, err
	}
	if p.Settings, err = c.readSettings(ctx); err != nil {
		return p, err
	}
	if p.Fingerprint, err = count(ctx, c.conn, fingerprint); err != nil {
		return p, sourceError{fmt.Errorf("read catalog: %w", err)}
	}
	return p, c.refuseUnmade()
}

// refuseUnmade refuses to follow tables that could not be made here: their changes would stop all others.
func (c *copying) refuseUnmade() error {
	var names []string
	for _, t := range c.inventory.tables {
		if t.published && c.rows[t.oid] == told {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return model.Invalid(PublicationField, "%s could not be copied (see errors), so their changes cannot be applied: take them out of the publication, or change them at the source", few(names))
}
