package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// preparedTransactions finds transactions that were prepared for a two-phase commit and never ended. No session belongs
// to them, so nothing else ends them.
func preparedTransactions(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		GID, Owner, SQL string
		Seconds         float64
	}
	rows, err := s.Conn.Query(ctx, fmt.Sprintf(`
		select gid, owner, format('ROLLBACK PREPARED %%L', gid), extract(epoch from now() - prepared)::float8 from pg_prepared_xacts
		where database = current_database() and prepared < now() - make_interval(secs => $1) order by prepared limit %d`, maxFindings),
		s.Limits.IdleTransaction.Seconds())
	if err != nil {
		return nil, err
	}
	prepared, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	return each(prepared, err, func(r row) model.Recommendation {
		rec := s.about("prepared_transaction", model.SeverityWarning, r.GID, "A prepared transaction is left open",
			fmt.Sprintf("%s prepared the transaction %q %.0f s ago and has neither committed nor rolled it back: its locks stay, through restarts too, and no dead row can be removed.", r.Owner, r.GID, r.Seconds))
		rec.Evidence = map[string]any{"gid": r.GID, "role": r.Owner, "open_seconds": int64(r.Seconds)}
		rec.SQL = r.SQL
		rec.Caution = "Ask its transaction manager first: other databases may have committed their part, and then COMMIT PREPARED is right."
		return rec
	})
}
