package importer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// verifyRows compares the row count of every table of the copy with the count that the source's server reported for the
// snapshot. It also compares the sequences and the number of large objects.
func (c *copying) verifyRows(ctx context.Context) error {
	roots, err := c.reroutedRoots(ctx)
	if err != nil {
		return err
	}
	var steps []*step
	below := map[string]int64{}
	for _, t := range c.inventory.tables {
		want, known := c.rows[t.oid]
		root := roots[t.String()]
		switch {
		case !known:
			return fmt.Errorf("the table %s was forgotten", t)
		case want == told:
		case root != "":
			below[root] += want
		default:
			steps = append(steps, c.countStep(t.String(), "only "+t.sanitized(), t.heap, want))
		}
	}
	for root, want := range below {
		steps = append(steps, c.countStep(root, root, 0, want))
	}
	if err := c.run(ctx, steps); err != nil {
		return err
	}
	if err := c.verifySequences(ctx); err != nil {
		return err
	}
	return c.verifyLargeObjects(ctx)
}

func (c *copying) countStep(table, from string, weight float64, want int64) *step {
	s := &step{name: "TABLE DATA " + table, weight: weight}
	s.do = func(ctx context.Context, w *worker) error {
		target, err := w.writer(ctx)
		if err != nil {
			return err
		}
		var got int64
		if err := target.QueryRow(ctx, "select count(*) from "+from).Scan(&got); err != nil {
			return err
		}
		if got != want {
			c.account.flaw(s.name, fmt.Errorf("the source has %d rows in the snapshot, the copy %d", want, got))
		}
		return nil
	}
	return s
}

func (c *copying) verifySequences(ctx context.Context) error {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return err
	}
	for _, q := range c.inventory.sequences {
		if q.position == lost {
			continue
		}
		var last int64
		var called bool
		err := target.QueryRow(ctx, "select last_value, is_called from "+q.sanitized()).Scan(&last, &called)
		switch {
		case err != nil && fatal(err):
			return err
		case err != nil:
			c.account.flaw("SEQUENCE "+q.String(), err)
		case last != q.last || called != q.called:
			c.account.flaw("SEQUENCE "+q.String(), fmt.Errorf("it is at %d in the source and at %d in the copy", q.last, last))
		}
	}
	return nil
}

func (c *copying) verifyLargeObjects(ctx context.Context) error {
	target, err := c.workers[0].writer(ctx)
	if err != nil {
		return err
	}
	var got int64
	if err := target.QueryRow(ctx, "select count(*) from pg_largeobject_metadata").Scan(&got); err != nil {
		return err
	}
	if got != c.inventory.largeObjects {
		c.account.flaw("LARGE OBJECTS", fmt.Errorf("the source has %d in the snapshot, the copy %d", c.inventory.largeObjects, got))
	}
	return nil
}

// kinds are queries that count the objects of a kind, in the source and in the copy. They exclude what PostgreSQL
// creates implicitly for another object, and differently from version to version: a partition's share of its parent's
// triggers and keys, types of tables and arrays, NOT NULL constraints. They also exclude what belongs to an extension,
// of which the indexes and constraints of its tables and domains are no members themselves.
var kinds = []struct{ name, query string }{
	{"schemas", `select count(*) from pg_namespace n where n.nspname not in ('information_schema', 'public') and n.nspname !~ '^pg_' ` + member("pg_namespace", "n")},
	{"tables", relations("'r', 'p'")},
	{"views", relations("'v'")},
	{"materialized views", relations("'m'")},
	{"sequences", relations("'S'")},
	{"foreign tables", relations("'f'")},
	{"indexes", relations("'i', 'I'") + ` and exists (select from pg_index x join pg_class t on t.oid = x.indrelid
		where x.indexrelid = c.oid and x.indisready and (x.indisvalid or t.relkind = 'p')` + memberID("pg_class", "t.oid") + ")"},
	{"functions", `select count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace where ` + userSchema + member("pg_proc", "p") + `
		and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'i')`},
	{"enum types", types("'e'")},
	{"domains", types("'d'")},
	{"ranges", types("'r'")},
	{"composite types", `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'c' and ` + users + `
		and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = c.reltype and d.deptype = 'e')`},
	{"constraints", `select count(*) from pg_constraint k join pg_namespace n on n.oid = k.connamespace where ` + userSchema + member("pg_constraint", "k") + `
		and k.contype in ('c', 'f', 'p', 'u', 'x') and k.conislocal` + memberID("pg_class", "k.conrelid") + memberID("pg_type", "k.contypid")},
	{"triggers", `select count(*) from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
		where not t.tgisinternal and not c.relispartition and ` + users},
	{"rules", `select count(*) from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
		where r.rulename <> '_RETURN' and ` + users},
	{"policies", `select count(*) from pg_policy p join pg_class c on c.oid = p.polrelid join pg_namespace n on n.oid = c.relnamespace where ` + users},
	{secured, `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relrowsecurity and ` + users},
	{"collations", `select count(*) from pg_collation l join pg_namespace n on n.oid = l.collnamespace where ` + userSchema + member("pg_collation", "l")},
	{"operators", `select count(*) from pg_operator o join pg_namespace n on n.oid = o.oprnamespace where ` + userSchema + member("pg_operator", "o")},
	{"casts", `select count(*) from pg_cast k where k.oid >= 16384 ` + member("pg_cast", "k") + `
		and not exists (select from pg_depend d where d.classid = 'pg_cast'::regclass and d.objid = k.oid and d.deptype = 'i')`},
	{"text search configurations", `select count(*) from pg_ts_config f join pg_namespace n on n.oid = f.cfgnamespace where ` + userSchema + member("pg_ts_config", "f")},
	{"text search dictionaries", `select count(*) from pg_ts_dict f join pg_namespace n on n.oid = f.dictnamespace where ` + userSchema + member("pg_ts_dict", "f")},
}

// secured is the kind of tables that have row security.
const secured = "tables with row security"

const userSchema = ` n.nspname <> 'information_schema' and n.nspname !~ '^pg_' `

// member is a condition that excludes objects that belong to an extension.
func member(catalog, alias string) string { return memberID(catalog, alias+".oid") }

// memberID is member for an object that an expression identifies.
func memberID(catalog, id string) string {
	return fmt.Sprintf(` and not exists (select from pg_depend d where d.classid = '%s'::regclass and d.objid = %s and d.deptype = 'e')`, catalog, id)
}

func relations(kinds string) string {
	return `select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in (` + kinds + `) and ` + users
}

func types(kinds string) string {
	return `select count(*) from pg_type t join pg_namespace n on n.oid = t.typnamespace where t.typtype in (` + kinds + `) and ` + userSchema + member("pg_type", "t")
}

// verifyObjects counts the objects of each kind on both sides.
func (c *copying) verifyObjects(ctx context.Context) error {
	target, err := c.Target(ctx)
	if err != nil {
		return err
	}
	defer target.Close(context.WithoutCancel(ctx))
	for _, kind := range kinds {
		if kind.name == secured && c.follow != nil { // it comes at the cutover
			continue
		}
		query := kind.query
		if c.number < 100000 { // which has no partitions
			query = strings.ReplaceAll(query, "not c.relispartition and", "")
		}
		want, err := count(ctx, c.conn, query)
		if err != nil {
			return sourceError{fmt.Errorf("count %s: %w", kind.name, err)}
		}
		got, err := count(ctx, target, kind.query)
		if err != nil {
			return fmt.Errorf("count %s: %w", kind.name, err)
		}
		if got != want {
			c.account.flaw(kind.name, fmt.Errorf("the source has %d, the copy %d", want, got))
		}
	}
	c.account.Say(model.ImportInfo, fmt.Sprintf("verified the rows of %s, %s, %s and %d kinds of objects",
		model.Count(len(c.rows), "table"), model.Count(len(c.inventory.sequences), "sequence"), model.Count(c.inventory.largeObjects, "large object"), len(kinds)))
	return nil
}

func count(ctx context.Context, conn *pgx.Conn, query string) (n int64, err error) {
	return n, conn.QueryRow(ctx, query).Scan(&n)
}
