package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// table is a table of the source that has rows of its own.
type table struct {
	oid          uint32
	schema, name string
	columns      string  // those that hold data, as SQL; generated ones are left out
	heap, all    float64 // bytes, without and with indexes
	rows         float64 // according to the source's statistics; below 0 if there are none
	readable     bool
	filtered     bool // row security would hide rows

	published bool   // in the publication that the import follows
	root      uint32 // the topmost table that it is a partition of, 0 for none; set with published
	counted   bool   // its rows are here
	// together is the root below which rows may be in other partitions here, so that all of them are counted together; 0 for a
	// table that is counted by itself.
	together uint32
}

func (t table) sanitized() string { return pgx.Identifier{t.schema, t.name}.Sanitize() }

func (t table) String() string { return t.schema + "." + t.name }

// inventory is the data that the source contains.
type inventory struct {
	tables       []table
	sequences    []sequence
	largeObjects int64
	// hiddenObjects counts the large objects that the user may not read.
	hiddenObjects int64
	views         []view
}

// view is a materialized view that holds rows in the source.
type view struct {
	oid          uint32
	schema, name string
}

// users is a condition that excludes PostgreSQL's own, temporary and extension objects.
const users = ` n.nspname <> 'information_schema' and n.nspname !~ '^pg_' and c.relpersistence <> 't'
	and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e') `

// takeInventory reads the catalog of the source, within the snapshot. It includes objects that were dropped since:
// functions return NULL or nothing for them.
func takeInventory(ctx context.Context, conn *pgx.Conn, version int) (inventory, error) {
	var inv inventory
	var err error
	if inv.tables, err = readTables(ctx, conn, version); err != nil {
		return inv, err
	}
	if inv.sequences, err = listSequences(ctx, conn, version); err != nil {
		return inv, err
	}
	if inv.views, err = list(ctx, conn, "list materialized views", func(row pgx.CollectableRow) (v view, err error) {
		return v, row.Scan(&v.oid, &v.schema, &v.name)
	}, `select c.oid, n.nspname::text, c.relname::text
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'm' and c.relispopulated and `+users); err != nil {
		return inv, err
	}
	if err := conn.QueryRow(ctx, `select count(*), count(*) filter (where not pg_has_role(m.lomowner, 'usage') and not exists (
			select from aclexplode(m.lomacl) g where g.privilege_type = 'SELECT' and case g.grantee when 0 then true else pg_has_role(g.grantee, 'usage') end))
		from pg_largeobject_metadata m`).Scan(&inv.largeObjects, &inv.hiddenObjects); err != nil {
		return inv, fmt.Errorf("count large objects: %w", err)
	}
	return inv, nil
}

func readTables(ctx context.Context, conn *pgx.Conn, version int) ([]table, error) {
	stored := ""
	if version >= 120000 {
		stored = "and a.attgenerated = ''"
	}
	return list(ctx, conn, "list tables", func(row pgx.CollectableRow) (t table, err error) {
		var columns []string
		defer func() { t.columns = quoteNames(columns) }()
		return t, row.Scan(&t.oid, &t.schema, &t.name, &columns, &t.heap, &t.all, &t.rows, &t.readable, &t.filtered)
	}, `select c.oid, n.nspname::text, c.relname::text,
		array(select a.attname::text from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped `+stored+` order by a.attnum),
		coalesce(pg_table_size(c.oid), 0)::float8, coalesce(pg_total_relation_size(c.oid), 0)::float8, c.reltuples::float8,
		coalesce(has_table_privilege(c.oid, 'select') and has_schema_privilege(n.oid, 'usage'), true),
		c.relrowsecurity and coalesce(row_security_active(c.oid), false)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind = 'r' and `+users+` order by 5 desc, 2, 3`)
}

// quoteNames returns a list of columns as SQL. It takes less memory than the names do.
func quoteNames(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quoteName(name)
	}
	return strings.Join(quoted, ", ")
}
