package advice

import (
	"context"
	"fmt"

	"holdfast/engine/model"
)

// cache reports that many reads miss shared buffers.
func cache(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	var hit, read float64
	var buffers string
	if err := s.Conn.QueryRow(ctx, `
		select pg_stat_get_db_blocks_hit(oid)::float8, (pg_stat_get_db_blocks_fetched(oid) - pg_stat_get_db_blocks_hit(oid))::float8,
			current_setting('shared_buffers')
		from pg_database where datname = current_database()`).Scan(&hit, &read, &buffers); err != nil {
		return nil, err
	}
	grown := s.grown("cache", map[string]float64{"hit": hit, "read": read})
	all := grown["hit"] + grown["read"]
	if all < float64(s.Limits.CacheBlocks) || grown["hit"] >= s.Limits.CacheRatio*all {
		return nil, nil
	}
	rec := s.about("cache_hit_ratio_low", model.SeverityInfo, "", "Many reads miss the cache",
		fmt.Sprintf("Only %.0f %% of the pages read were in shared buffers (%s). Index what is read whole, or have the operator give the database more with `holdfast admin database set %s shared_buffers=…`.", 100*grown["hit"]/all, buffers, s.Database.Name))
	rec.Evidence = map[string]any{"blocks_hit": int64(grown["hit"]), "blocks_read": int64(grown["read"]), "shared_buffers": buffers}
	rec.SQL = "SELECT relname, heap_blks_read, heap_blks_hit FROM pg_statio_user_tables ORDER BY heap_blks_read DESC LIMIT 10"
	rec.Caution = "The statement shows which tables are read most. More shared buffers take memory from everything else on the machine, and need a restart."
	return []model.Recommendation{rec}, nil
}
