package advice

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// slowStatements finds statements with a long average time lately.
func slowStatements(_ context.Context, s *Session) ([]model.Recommendation, error) {
	counters := map[string]float64{}
	for _, st := range s.Statements {
		counters[fmt.Sprint(st.ID, " calls")], counters[fmt.Sprint(st.ID, " ms")] = st.Calls, st.TotalMS
	}
	grown := s.grown("slow_statements", counters)
	var found []model.Recommendation
	for _, st := range s.Statements {
		calls, ms := grown[fmt.Sprint(st.ID, " calls")], grown[fmt.Sprint(st.ID, " ms")]
		if calls < float64(s.Limits.SlowCalls) || calls == 0 || ms/calls < float64(s.Limits.SlowMean.Milliseconds()) {
			continue
		}
		rec := s.about("slow_statement", model.SeverityInfo, fmt.Sprint(st.ID), "A statement is slow",
			fmt.Sprintf("A statement took %.0f ms on average, %.0f times lately: %s", ms/calls, calls, shorten(st.Text)))
		rec.Evidence = map[string]any{"calls": int64(calls), "mean_ms": ms / calls, "total_ms": ms, "statement": st.Text}
		rec.SQL, rec.Caution = explain(s.Database.Major, st)
		found = append(found, rec)
	}
	return found[:min(len(found), maxFindings)], nil
}

func shorten(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

// explain returns how the owner can see the plan of a statement, and what to look for.
func explain(major int, st Statement) (sql, caution string) {
	const look = "Look for sequential scans of large tables, and for estimates far from the truth (ANALYZE)."
	switch {
	case st.Cut:
		return "", "The statement is too long to show in full: run EXPLAIN where it comes from. " + look
	case major >= 16:
		sql = "EXPLAIN (GENERIC_PLAN) " + st.Text
	default:
		sql = explainPrepared(st.Text)
	}
	return sql, "It shows the plan and runs nothing. " + look
}

// explainPrepared returns SQL that shows the plan of a statement with parameters, for
// versions in which EXPLAIN does not accept them.
func explainPrepared(text string) string {
	count := 0
	for n := 1; strings.Contains(text, fmt.Sprintf("$%d", n)); n++ {
		count = n
	}
	arguments := ""
	if count > 0 {
		arguments = "(" + strings.Join(slices.Repeat([]string{"NULL"}, count), ", ") + ")"
	}
	return "SET plan_cache_mode = force_generic_plan; PREPARE advised AS " + text + "; EXPLAIN EXECUTE advised" + arguments + "; DEALLOCATE advised"
}
