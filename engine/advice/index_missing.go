package advice

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"holdfast/engine/model"
)

// missingIndexes finds large tables with repeated sequential scans, and the column that
// the statements on them compare most.
func missingIndexes(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	type row struct {
		table
		Columns                []string // with which no index begins
		SeqScans, Rows, Others int64
	}
	rows, err := listUpTo[row](ctx, s, maxTables, `
		select n.nspname, t.relname,
			array(select a.attname::text from pg_attribute a where a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
				and not exists (select from pg_index x where x.indrelid = t.oid and x.indisvalid and x.indpred is null and x.indkey[0] = a.attnum)
				order by a.attnum limit 200),
			pg_stat_get_numscans(t.oid), pg_stat_get_tuples_returned(t.oid),
			coalesce((select sum(pg_stat_get_numscans(x.indexrelid)) from pg_index x where x.indrelid = t.oid), 0)::bigint
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'm') order by pg_stat_get_tuples_returned(t.oid) desc`)
	if err != nil {
		return nil, err
	}
	counters := map[string]float64{}
	for _, r := range rows {
		counters[r.sql()+" scans"], counters[r.sql()+" rows"], counters[r.sql()+" others"] = float64(r.SeqScans), float64(r.Rows), float64(r.Others)
	}
	grown := s.grown("missing_indexes", counters)
	var found []model.Recommendation
	for _, r := range rows {
		scans, read, others := grown[r.sql()+" scans"], grown[r.sql()+" rows"], grown[r.sql()+" others"]
		if scans < float64(s.Limits.SeqScans) || scans == 0 || read/scans < float64(s.Limits.SeqRows) || others > scans || len(found) == maxFindings {
			continue
		}
		rec := s.about("missing_index", model.SeverityWarning, r.String(), "A large table is read whole",
			fmt.Sprintf("%s was read from end to end %.0f times lately, %.0f rows each time.", r.table, scans, read/scans))
		rec.Evidence = map[string]any{"table": r.String(), "sequential_scans": int64(scans), "rows_read": int64(read), "index_scans": int64(others)}
		if column, ms := mostCompared(r.Table, r.Columns, s.Statements); column != "" {
			rec.Message += fmt.Sprintf(" The statements on it compare %s most.", column)
			rec.Evidence["column"], rec.Evidence["statements_ms"] = column, ms
			rec.SQL, rec.Caution = createIndex(r.table, []string{column}, false)
		} else {
			rec.SQL = "SELECT seq_scan, seq_tup_read, idx_scan FROM pg_stat_user_tables WHERE relid = " + quoteText(r.sql()) + "::regclass"
			rec.Caution = "Which column to index is not known: the statement shows the scans, EXPLAIN of the queries their conditions."
		}
		found = append(found, rec)
	}
	return found, nil
}

// compared matches what a statement compares: a name, quoted or not, before an operator.
var compared = regexp.MustCompile(`(?i)(?:"((?:[^"]|"")+)"|([\pL_][\pL\pN_$]*))(?:\s*[=<>]|\s+(?:between|in|like)\b)`)

// mostCompared returns the column that the statements on a table compare most, weighted by
// the time they take. It matches text, which is right for simple statements; a person
// judges the advice.
func mostCompared(table string, columns []string, statements []Statement) (best string, ms float64) {
	named := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(table) + `\b`)
	sums := map[string]float64{}
	for _, st := range statements {
		if !named.MatchString(st.Text) {
			continue
		}
		names := map[string]bool{}
		for _, m := range compared.FindAllStringSubmatch(st.Text, -1) {
			names[strings.ReplaceAll(m[1], `""`, `"`)+strings.ToLower(m[2])] = true
		}
		for name := range names {
			sums[name] += st.TotalMS
		}
	}
	for _, column := range columns {
		if sum := sums[column]; sum > ms {
			best, ms = column, sum
		}
	}
	return best, ms
}
