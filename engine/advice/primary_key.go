package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// missingPrimaryKeys finds tables without a primary key.
func missingPrimaryKeys(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Rows   int64
		Column string // a free name; "" if a new column cannot be the key alone
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, greatest(t.reltuples::bigint, pg_stat_get_live_tuples(t.oid), 0),
			case when t.relkind = 'r' and t.reloftype = 0 and not exists (select from pg_inherits h where t.oid in (h.inhrelid, h.inhparent))
				then coalesce((select name from unnest(array['id', 'row_id', 'row_id_2']) with ordinality c (name, n)
					where not exists (select from pg_attribute a where a.attrelid = t.oid and a.attname = c.name) order by n limit 1), '') else '' end
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'p') and not t.relispartition
			and not exists (select from pg_index x where x.indrelid = t.oid and x.indisprimary)
		order by 3 desc, 1, 2`)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("missing_primary_key", model.SeverityWarning, r.String(), "A table has no primary key",
			fmt.Sprintf("The rows of %s cannot be told apart: logical replication and many tools cannot change them one by one.", r.table))
		rec.Evidence = map[string]any{"table": r.String(), "estimated_rows": r.Rows}
		if r.Column != "" {
			rec.SQL = "ALTER TABLE " + r.sql() + " ADD COLUMN " + quote(r.Column) + " bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
			rec.Caution = "It rewrites the table and locks it meanwhile. Where columns are unique already, ADD PRIMARY KEY over them instead."
		} else {
			rec.Message += " A key over columns that are unique mends that; of a partitioned table it must hold those that the rows are partitioned by."
			rec.SQL = "SELECT attname, n_distinct FROM pg_catalog.pg_stats WHERE (schemaname, tablename) = (" + quoteText(r.Schema) + ", " + quoteText(r.Table) + ") ORDER BY n_distinct"
			rec.Caution = "Which columns to take is not known: after ANALYZE, the statement shows -1 for those whose values all differ."
		}
		return rec
	})
}
