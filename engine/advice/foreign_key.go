package advice

import (
	"context"
	"fmt"
	"strings"

	"holdfast/engine/model"
)

// unindexedForeignKeys finds foreign keys for which every delete in the referenced table
// scans the referencing table.
func unindexedForeignKeys(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Constraint  string
		Columns     []string
		Rows        int64
		Partitioned bool
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, c.conname,
			array(select a.attname::text from unnest(c.conkey) with ordinality k(number, place)
				join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.number order by k.place),
			greatest(t.reltuples::bigint, pg_stat_get_live_tuples(t.oid)), t.relkind = 'p'
		from pg_constraint c join pg_class t on t.oid = c.conrelid join pg_namespace n on n.oid = t.relnamespace
		where %s and c.contype = 'f' and c.conparentid = 0 and t.relkind in ('r', 'p')
			and greatest(t.reltuples::bigint, pg_stat_get_live_tuples(t.oid)) >= $1
			and not exists (select from pg_index x where x.indrelid = c.conrelid and x.indisvalid and `+servesKey+`)
		order by 5 desc`, s.Limits.ForeignKeyRows)
	return each(rows, err, func(r row) model.Recommendation {
		rec := s.about("unindexed_foreign_key", model.SeverityWarning, r.String()+"."+r.Constraint, "A foreign key has no index",
			fmt.Sprintf("No index begins with the columns of %s in %s: every delete or change of a key it refers to reads the whole table.", r.Constraint, r.table))
		rec.Evidence = map[string]any{"constraint": r.Constraint, "table": r.String(), "columns": r.Columns, "estimated_rows": r.Rows}
		rec.SQL, rec.Caution = createIndex(r.table, r.Columns, r.Partitioned)
		return rec
	})
}

// servesKey is the condition that the index x supports the check of the foreign key c: it
// begins with the key's columns, in operator classes with the check's equality operator,
// and omits only rows in which one of those columns is null. A BRIN index has the equality
// operator but still requires reading large parts of the table for each key. The predicate
// is matched as PostgreSQL stores it, because converting it to SQL waits for locks on the
// table.
const servesKey = `not exists (select from unnest(c.conkey, c.conpfeqop) k(number, equality) where not exists (
		select from generate_series(0, cardinality(c.conkey) - 1) place
			join pg_opclass o on o.oid = x.indclass[place] join pg_am m on m.oid = o.opcmethod and m.amname <> 'brin'
			join pg_amop p on p.amopfamily = o.opcfamily and p.amopopr = k.equality
		where x.indkey[place] = k.number))
	and (x.indpred is null
		or regexp_replace(x.indpred::text, '\{NULLTEST :arg \{VAR [^{}]*\} :nulltesttype 1 [^{}]*\}', '', 'g') !~ '\{(?!BOOLEXPR :boolop and )'
		and array(select v[1]::int2 from regexp_matches(x.indpred::text, ':varattno (\d+)', 'g') v) <@ c.conkey)`

// createIndex returns the statement that creates an index, and its caution.
func createIndex(t table, columns []string, partitioned bool) (sql, caution string) {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	on := "ON " + t.sql() + " (" + strings.Join(quoted, ", ") + ")"
	if partitioned {
		return "CREATE INDEX " + on, "It keeps writers of the table waiting until it is made."
	}
	return "CREATE INDEX CONCURRENTLY " + on, "It reads the whole table, takes disk space, and cannot run in a transaction; one that fails leaves an invalid index to drop."
}
