package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// wraparound finds tables that autovacuum should have frozen long ago. PostgreSQL stops
// accepting writes when the oldest is 2^31 transactions old, minus a margin.
func wraparound(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Age, Limit int64
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, age(t.relfrozenxid)::bigint, current_setting('autovacuum_freeze_max_age')::bigint
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'm')
			and age(t.relfrozenxid) > least(1e9, $1::float8 * current_setting('autovacuum_freeze_max_age')::float8)
		order by 3 desc`, s.Limits.FreezeFactor)
	return each(rows, err, func(r row) model.Recommendation {
		severity := model.SeverityWarning
		if r.Age > 1_500_000_000 {
			severity = model.SeverityCritical
		}
		rec := s.about("transaction_wraparound", severity, r.String(), "Transaction ids run out",
			fmt.Sprintf("The oldest row of %s is %d transactions old, and autovacuum, which begins at %d, has not frozen it. At about 2.1 billion the database stops taking writes.", r.table, r.Age, r.Limit))
		rec.Category = model.CategoryCapacity
		rec.Evidence = map[string]any{"table": r.String(), "age": r.Age, "autovacuum_freeze_max_age": r.Limit}
		rec.SQL = "VACUUM (FREEZE) " + r.sql()
		rec.Caution = "It reads the whole table. An old transaction, a prepared one or an abandoned replication slot can be what keeps autovacuum from it."
		return rec
	})
}
