package advice

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// MaxRelations limits how many tables and how many indexes are listed, the largest first.
const MaxRelations = 200

// TableSize is the size of a table on disk, in bytes, with its indexes and TOAST.
type TableSize struct {
	Schema, Name string
	Rows         int64 // an estimate, -1 before the first ANALYZE
	Total        int64
	Table        int64 // without indexes and TOAST
	TOAST        int64
	Indexes      int64
	// Bloat estimates how much of Table holds no rows. It is nil without statistics of every column.
	Bloat       *int64
	DeadRows    int64
	LastVacuum  *time.Time
	LastAnalyze *time.Time
	// SequentialScans and IndexScans count since statistics began.
	SequentialScans, IndexScans int64
}

// IndexSize is an index, with its size in bytes.
type IndexSize struct {
	Schema, Table, Name string
	Size                int64
	// Bloat estimates how much of Size holds no rows, beyond what the fill factor leaves free. It is nil for other kinds than
	// B-tree, and without statistics of every column.
	Bloat         *int64
	Scans         int64 // since statistics began
	Unique, Valid bool
	// Unused means that no query has used the index, and that it has no other purpose.
	Unused bool
}

// neededBytes estimates the space that the rows of the table t need: 24 bytes of header and 4 of line pointer for
// each row, and ANALYZE's column widths, in pages of 8192 bytes with a 24-byte header (PostgreSQL documentation,
// 73.6 Database Page Layout). w is [columnWidths].
const neededBytes = `ceil(t.reltuples * (28 + 8 * ceil(w.width / 8)) / ((8192 - 24) * coalesce((select option_value::float8
	from pg_options_to_table(t.reloptions) where option_name = 'fillfactor'), 100) / 100))::bigint * 8192`

// columnWidths is the lateral table w of the columns of t: how many there are, of how many the width is known, and
// the sum of those.
const columnWidths = `lateral (select count(*) columns, count(s.starelid) known, sum(s.stawidth * (1 - s.stanullfrac)) width
	from pg_attribute a left join pg_statistic s on s.starelid = a.attrelid and s.staattnum = a.attnum and not s.stainherit
	where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped) w`

// widthsKnown is the condition for neededBytes.
const widthsKnown = `t.reltuples >= 0 and (w.columns = w.known or t.reltuples = 0)`

// neededByIndex estimates the space that the rows of the B-tree i need, without its deduplication of equal keys: 8 bytes of
// header, 8 more if there are nulls, 4 of line pointer and ANALYZE's column widths, in pages of 8192 bytes with 40 bytes of
// header and special space, and the meta page. w is [keyWidths].
const neededByIndex = `(1 + ceil(i.reltuples * (12 + case when w.nulls then 8 else 0 end + 8 * ceil(w.width / 8)) / ((8192 - 40) * coalesce((select option_value::float8
	from pg_options_to_table(i.reloptions) where option_name = 'fillfactor'), 90) / 100)))::bigint * 8192`

// keyWidths is the lateral table w of the columns of the index x, whose statistics are those of the table's columns, or
// the index's own for expressions.
const keyWidths = `lateral (select count(*) columns, count(s.starelid) known, sum(s.stawidth * (1 - s.stanullfrac)) width, bool_or(s.stanullfrac > 0) nulls
	from unnest(x.indkey::int2[]) with ordinality k (attnum, place) left join pg_statistic s on not s.stainherit
		and s.starelid = case when k.attnum = 0 then x.indexrelid else x.indrelid end
		and s.staattnum = case when k.attnum = 0 then k.place else k.attnum end) w`

// keysKnown is the condition for neededByIndex.
const keysKnown = `i.relam = (select oid from pg_am where amname = 'btree') and i.reltuples >= 0 and (w.columns = w.known or i.reltuples = 0)`

// withoutPurpose is the condition for an index x of the class i of the table t that only queries need, and that none has
// used: it is not unique, does not cluster the table and supports no foreign key.
const withoutPurpose = `not i.relispartition and not x.indisunique and not x.indisexclusion and not x.indisreplident and not x.indisclustered and x.indisvalid
	and pg_stat_get_numscans(i.oid) = 0
	and not exists (select from pg_constraint c where c.contype = 'f' and c.conrelid = t.oid
		and (x.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)`

// TableSizes returns the tables of a tenant, the largest first. conn is the superuser's connection to the tenant's
// database. The server's lock_timeout should be short: a size needs a lock on the table.
func TableSizes(ctx context.Context, conn *pgx.Conn) ([]TableSize, error) {
	rows, err := conn.Query(ctx, fmt.Sprintf(`
		select n.nspname::text, t.relname::text, t.reltuples::bigint, pg_total_relation_size(t.oid),
			pg_relation_size(t.oid), coalesce(pg_total_relation_size(nullif(t.reltoastrelid, 0)), 0), pg_indexes_size(t.oid),
			case when %s then greatest(t.relpages::bigint * 8192 - coalesce(%s, 0), 0) end,
			pg_stat_get_dead_tuples(t.oid),
			greatest(pg_stat_get_last_vacuum_time(t.oid), pg_stat_get_last_autovacuum_time(t.oid)),
			greatest(pg_stat_get_last_analyze_time(t.oid), pg_stat_get_last_autoanalyze_time(t.oid)),
			pg_stat_get_numscans(t.oid),
			coalesce((select sum(pg_stat_get_numscans(x.indexrelid))::bigint from pg_index x where x.indrelid = t.oid), 0)
		from pg_class t join pg_namespace n on n.oid = t.relnamespace, %s
		where %s and t.relkind in ('r', 'm')
		order by t.relpages + coalesce((select sum(relpages) from pg_class i join pg_index x on x.indexrelid = i.oid where x.indrelid = t.oid), 0)
			+ coalesce((select relpages from pg_class o where o.oid = t.reltoastrelid), 0) desc, 4 desc limit %d`,
		widthsKnown, neededBytes, columnWidths, tenantsTable, MaxRelations))
	if err != nil {
		return nil, fmt.Errorf("read the sizes of tables: %w", err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TableSize])
	if err != nil {
		return nil, fmt.Errorf("read the sizes of tables: %w", err)
	}
	return tables, nil
}

// IndexSizes returns the indexes of a tenant, the largest first. conn is as for [TableSizes].
func IndexSizes(ctx context.Context, conn *pgx.Conn) ([]IndexSize, error) {
	rows, err := conn.Query(ctx, fmt.Sprintf(`
		select n.nspname::text, t.relname::text, i.relname::text, pg_relation_size(i.oid),
			case when %s then greatest(i.relpages::bigint * 8192 - coalesce(%s, 8192), 0) end, pg_stat_get_numscans(i.oid), x.indisunique, x.indisvalid,
			%s
		from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class t on t.oid = x.indrelid
			join pg_namespace n on n.oid = t.relnamespace, %s
		where %s and t.relkind in ('r', 'm') and i.relkind = 'i'
		order by i.relpages desc, 4 desc, i.oid limit %d`, keysKnown, neededByIndex, withoutPurpose, keyWidths, tenantsTable, MaxRelations))
	if err != nil {
		return nil, fmt.Errorf("read the sizes of indexes: %w", err)
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[IndexSize])
	if err != nil {
		return nil, fmt.Errorf("read the sizes of indexes: %w", err)
	}
	return indexes, nil
}
