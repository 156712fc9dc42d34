package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// connections reports that few connections are left.
func connections(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	var used, idle, limit int64
	if err := s.Conn.QueryRow(ctx, `
		select count(*), count(*) filter (where state = 'idle' and state_change < now() - make_interval(secs => $1)),
			coalesce((select nullif(rolconnlimit, -1)::bigint from pg_roles where rolname = $2),
				current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
				- coalesce(current_setting('reserved_connections', true)::bigint, 0))
		from pg_stat_activity where backend_type = 'client backend' and usename = $2`,
		s.Limits.IdleSession.Seconds(), s.Database.Owner).Scan(&used, &idle, &limit); err != nil {
		return nil, err
	}
	if float64(used) < s.Limits.ConnectionShare*float64(limit) {
		return nil, nil
	}
	severity := model.SeverityWarning
	if used >= limit {
		severity = model.SeverityCritical
	}
	rec := s.about("connections_near_limit", severity, "", "Connections run out",
		fmt.Sprintf("%d of %d connections are in use, %d of them idle. Beyond that logins are refused: pool connections in the client, or have the operator raise max_connections with `holdfast admin database set`.", used, limit, idle))
	rec.Category = model.CategoryCapacity
	rec.Evidence = map[string]any{"used": used, "limit": limit, "idle": idle}
	rec.SQL = fmt.Sprintf("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()"+
		" AND state = 'idle' AND state_change < now() - interval '%d seconds'", int64(s.Limits.IdleSession.Seconds()))
	rec.Caution = "It ends the owner's idle sessions; a client that does not reconnect by itself fails."
	return []model.Recommendation{rec}, nil
}
