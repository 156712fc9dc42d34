package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// bloat finds tables whose files are mostly empty, by the estimate of [neededBytes].
func bloat(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Bytes, Needed int64
	}
	rows, err := list[row](ctx, s, `
		select * from (select n.nspname, t.relname, t.relpages::bigint * 8192 bytes, `+neededBytes+` needed
		from pg_class t join pg_namespace n on n.oid = t.relnamespace, `+columnWidths+`
		where %s and t.relkind in ('r', 'm') and t.relpages::bigint * 8192 >= $1 and `+widthsKnown+`) e
		where bytes - coalesce(needed, 0) >= $2::float8 * bytes order by bytes desc`, s.Limits.BloatBytes, s.Limits.BloatShare)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("table_bloat", model.SeverityInfo, r.String(), "A table is mostly empty space",
			fmt.Sprintf("%s takes %d MB; its rows need about %d MB. New rows will fill the free space, or a rewrite returns it to the disk.", r.table, r.Bytes>>20, r.Needed>>20))
		rec.Evidence = map[string]any{"table": r.String(), "size_bytes": r.Bytes, "estimated_bytes": r.Needed}
		rec.SQL = "VACUUM (FULL, ANALYZE) " + r.sql()
		rec.Caution = "It locks the table against everything until it is rewritten, and needs disk space for a second copy. The need is an estimate."
		return rec
	})
}
