package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// idleTransactions finds sessions that hold a transaction open without working.
func idleTransactions(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		PID     int32
		Role    string
		Seconds float64
	}
	rows, err := s.Conn.Query(ctx, fmt.Sprintf(`
		select pid, usename, extract(epoch from now() - xact_start)::float8 from pg_stat_activity
		where backend_type = 'client backend' and usename <> current_user and state like 'idle in transaction%%'
			and xact_start < now() - make_interval(secs => $1) order by xact_start limit %d`, maxFindings), s.Limits.IdleTransaction.Seconds())
	if err != nil {
		return nil, err
	}
	sessions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	return each(sessions, err, func(r row) model.Recommendation {
		rec := s.about("idle_in_transaction", model.SeverityWarning, fmt.Sprint(r.PID), "A transaction is left open",
			fmt.Sprintf("A session of %s holds a transaction open for %.0f s and does nothing: its locks stay, and no dead row can be removed.", r.Role, r.Seconds))
		rec.Evidence = map[string]any{"pid": r.PID, "role": r.Role, "open_seconds": int64(r.Seconds)}
		rec.SQL = fmt.Sprintf("SELECT pg_terminate_backend(%d)", r.PID)
		rec.Caution = "The transaction is rolled back."
		return rec
	})
}
