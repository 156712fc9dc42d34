package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// bloat finds tables whose files are mostly empty. It estimates the space a table
// needs from ANALYZE's column widths: 24 bytes of header and 4 of line pointer for
// each row, in pages of 8192 bytes with a 24-byte header (PostgreSQL documentation,
// 73.6 Database Page Layout).
func bloat(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Bytes, Needed int64
	}
	rows, err := list[row](ctx, s, `
		select * from (select n.nspname, t.relname, t.relpages::bigint * 8192 bytes,
			ceil(t.reltuples * (28 + 8 * ceil(w.width / 8)) / ((8192 - 24) * coalesce((select option_value::float8
				from pg_options_to_table(t.reloptions) where option_name = 'fillfactor'), 100) / 100))::bigint * 8192 needed
		from pg_class t join pg_namespace n on n.oid = t.relnamespace,
			lateral (select count(*) columns, count(s.starelid) known, sum(s.stawidth * (1 - s.stanullfrac)) width
				from pg_attribute a left join pg_statistic s on s.starelid = a.attrelid and s.staattnum = a.attnum and not s.stainherit
				where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped) w
		where %s and t.relkind in ('r', 'm') and t.reltuples >= 0 and t.relpages::bigint * 8192 >= $1
			and (w.columns = w.known or t.reltuples = 0)) e
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
