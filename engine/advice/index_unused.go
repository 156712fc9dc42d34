package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// unusedIndexes finds indexes that slow every write and speed up no read. It skips those
// with another purpose: unique ones, those that cluster the table, those that support a foreign key.
//
// Recovery after a crash discards all statistics. The database's own do not show when
// counting restarted; the archiver's, which are discarded with them, do.
func unusedIndexes(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	since := s.Now.Add(-s.Limits.StatisticsAge)
	if s.Database.CreatedAt.After(since) {
		return nil, nil
	}
	type row struct {
		table
		Index string
		Bytes int64
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, i.relname, i.relpages::bigint * 8192
		from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
			join pg_namespace n on n.oid = t.relnamespace join pg_database d on d.datname = current_database()
		where %s and t.relkind in ('r', 'm') and i.relkind = 'i' and `+withoutPurpose+` and i.relpages::bigint * 8192 >= $1
			and greatest(pg_stat_get_db_stat_reset_time(d.oid), (select stats_reset from pg_stat_archiver)) <= $2
		order by i.relpages desc`, s.Limits.IndexBytes, since)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("unused_index", model.SeverityInfo, r.Schema+"."+r.Index, "An index is not used",
			fmt.Sprintf("No query has used the index %s of %s since statistics began. It takes disk space and slows every write.", r.Index, r.table))
		rec.Evidence = map[string]any{"index": r.Index, "table": r.String(), "size_bytes": r.Bytes, "scans": 0}
		rec.SQL = "DROP INDEX CONCURRENTLY " + pgx.Identifier{r.Schema, r.Index}.Sanitize()
		rec.Caution = "Statistics count since the database was made or they were reset: an index for a rare report, or one made lately, looks unused too."
		return rec
	})
}
