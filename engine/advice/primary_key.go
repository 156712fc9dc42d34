package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// missingPrimaryKeys finds tables whose rows cannot be told apart.
func missingPrimaryKeys(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Rows  int64
		HasID bool
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, greatest(t.reltuples::bigint, pg_stat_get_live_tuples(t.oid), 0),
			exists (select from pg_attribute a where a.attrelid = t.oid and a.attname = 'id')
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'p') and not t.relispartition
			and not exists (select from pg_index x where x.indrelid = t.oid and x.indisprimary)
		order by 3 desc, 1, 2`)
	if err != nil {
		return nil, err
	}
	var found []model.Recommendation
	for _, r := range rows {
		column := "id"
		if r.HasID {
			column = "row_id"
		}
		rec := s.about("missing_primary_key", model.SeverityWarning, r.String(), "A table has no primary key",
			fmt.Sprintf("The rows of %s cannot be told apart: logical replication and many tools cannot change them one by one.", r.table))
		rec.Evidence = map[string]any{"table": r.String(), "estimated_rows": r.Rows}
		rec.SQL = "ALTER TABLE " + r.sql() + " ADD COLUMN " + quote(column) + " bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
		rec.Caution = "It rewrites the table and locks it meanwhile. Where columns are unique already, ADD PRIMARY KEY over them instead."
		found = append(found, rec)
	}
	return found, nil
}
