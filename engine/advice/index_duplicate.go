package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// duplicateIndexes finds indexes that another index of the same table makes redundant. An
// index that also enforces a constraint or clusters the table stays, and makes the others
// redundant. Included columns need no comparison of their own: they follow from the columns
// and from the options, which only key columns have.
func duplicateIndexes(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Index, Same string
		Bytes       int64
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, i.relname, min(j.relname::text), i.relpages::bigint * 8192
		from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
			join pg_namespace n on n.oid = t.relnamespace
			join pg_index y on y.indrelid = x.indrelid and y.indexrelid <> x.indexrelid join pg_class j on j.oid = y.indexrelid
		where %s and t.relkind in ('r', 'm') and i.relkind = 'i' and not i.relispartition and x.indisvalid and y.indisvalid
			and i.relam = j.relam and x.indkey::text = y.indkey::text and x.indclass::text = y.indclass::text
			and x.indcollation::text = y.indcollation::text and x.indoption::text = y.indoption::text
			and coalesce(x.indexprs::text, '') = coalesce(y.indexprs::text, '') and coalesce(x.indpred::text, '') = coalesce(y.indpred::text, '')
			and i.reloptions is not distinct from j.reloptions
			and array(select attoptions::text from pg_attribute where attrelid = i.oid order by attnum)
				= array(select attoptions::text from pg_attribute where attrelid = j.oid order by attnum)
			and not (x.indisunique or x.indisexclusion or x.indisclustered)
			and (y.indisunique or y.indisexclusion or y.indisclustered or y.indexrelid < x.indexrelid)
		group by n.nspname, t.relname, i.relname, i.relpages order by i.relpages desc`)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("duplicate_index", model.SeverityInfo, r.Schema+"."+r.Index, "Two indexes do the same",
			fmt.Sprintf("The index %s of %s does what %s does too.", r.Index, r.table, r.Same))
		rec.Evidence = map[string]any{"index": r.Index, "same_as": r.Same, "table": r.String(), "size_bytes": r.Bytes}
		rec.SQL = "DROP INDEX CONCURRENTLY " + pgx.Identifier{r.Schema, r.Index}.Sanitize()
		rec.Caution = "Drop only one of the two."
		return rec
	})
}
