package importer

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

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
	return refuseMoved(names, quoteName(c.follow.Publication))
}

// enumHashes is a query for what is below a table that is partitioned by the hash of an enum, or of a type that consists of one.
const enumHashes = `with recursive consists (whole, part) as (
		select distinct a.atttypid, a.atttypid from pg_attribute a join pg_partitioned_table p on p.partrelid = a.attrelid where a.attnum = any (p.partattrs)
		union
		select w.whole, p.part from consists w join pg_type t on t.oid = w.part cross join lateral (
			select t.typbasetype where t.typtype = 'd'
			union all select t.typelem where t.typtype = 'b' and t.typelem <> 0 and t.typlen = -1
			union all select a.atttypid from pg_attribute a where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) p (part)
	), hashed (oid) as (
		select p.partrelid from pg_partitioned_table p where p.partstrat = 'h' and exists (select from pg_attribute a
			join consists w on w.whole = a.atttypid join pg_type t on t.oid = w.part
			where a.attrelid = p.partrelid and a.attnum = any (p.partattrs) and t.typtype = 'e')
		union
		select i.inhrelid from hashed h join pg_inherits i on i.inhparent = h.oid
	) select oid from hashed`

// refuseEnumHashes refuses published partitions by the hash of an enum before the copy, unless their root routes changes: a
// row that belongs to another partition here would stop all changes.
func (s *Session) refuseEnumHashes(ctx context.Context, name string, tables []table) error {
	if s.number < 110000 || s.follow.publication.viaRoot {
		return nil
	}
	hashed, err := list(ctx, s.conn, "list partitions by the hash of an enum", pgx.RowTo[uint32], enumHashes)
	if err != nil {
		return sourceError{err}
	}
	var names []string
	for _, t := range tables {
		if t.published && slices.Contains(hashed, t.oid) {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return refuseMoved(names, name)
}

// refuseMoved refuses partitions whose rows are in others here.
func refuseMoved(names []string, publication string) error {
	return model.Invalid(PublicationField, "rows of the partitions %s belong to other partitions here, where enums hash or text sorts differently: "+
		"run in the source's database ALTER PUBLICATION %s SET (publish_via_partition_root = true); (from PostgreSQL 13 on), and start the import again",
		few(names), oneLine(publication))
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
	if p.Publication, err = listParts(ctx, c.conn, c.number, c.follow.Publication); err != nil {
		return p, sourceError{err}
	}
	if p.Fingerprint, err = count(ctx, c.conn, fingerprint); err != nil {
		return p, sourceError{fmt.Errorf("read catalog: %w", err)}
	}
	return p, c.refuseUnmade(ctx)
}

// refuseUnmade refuses to follow tables that could not be made here, or not their keys: their changes would stop all others.
func (c *copying) refuseUnmade(ctx context.Context) error {
	keyed, err := c.keyed(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range c.entries {
		for _, t := range c.follow.extensions {
			if e.desc == "EXTENSION" && e.tag == t.extension && c.hasFailed(e.id) {
				names = append(names, t.String())
			}
		}
	}
	for _, t := range c.inventory.tables {
		if t.published && (c.rows[t.oid] == told || !keyed[t.String()]) {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return model.Invalid(PublicationField, "%s or the keys of them could not be made here (see errors), so their changes cannot be applied: "+
		"take them out of the publication, or change them at the source", few(names))
}

// keyed returns the names of the tables here whose changed rows can be found.
func (c *copying) keyed(ctx context.Context) (map[string]bool, error) {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return nil, err
	}
	names, err := list(ctx, target, "list replica identities of the copy", pgx.RowTo[string], `select n.nspname || '.' || c.relname
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and`+identified)
	if err != nil {
		return nil, err
	}
	keyed := map[string]bool{}
	for _, name := range names {
		keyed[name] = true
	}
	return keyed, nil
}
