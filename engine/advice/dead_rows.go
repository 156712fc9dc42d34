package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// deadRows finds tables in which autovacuum cannot keep up.
func deadRows(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Live, Dead int64
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, pg_stat_get_live_tuples(t.oid), pg_stat_get_dead_tuples(t.oid)
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'm') and pg_stat_get_dead_tuples(t.oid) >= $1
			and pg_stat_get_dead_tuples(t.oid) >= $2::float8 * (pg_stat_get_live_tuples(t.oid) + pg_stat_get_dead_tuples(t.oid))
		order by 4 desc`, s.Limits.DeadRows, s.Limits.DeadShare)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("dead_rows", model.SeverityWarning, r.String(), "Many dead rows",
			fmt.Sprintf("%s holds %d dead rows beside %d live ones: every scan reads them too.", r.table, r.Dead, r.Live))
		rec.Evidence = map[string]any{"table": r.String(), "live_rows": r.Live, "dead_rows": r.Dead}
		rec.SQL = "VACUUM (ANALYZE) " + r.sql()
		rec.Caution = "It reads the whole table. While an old transaction is open it cannot remove what that may still see."
		return rec
	})
}
