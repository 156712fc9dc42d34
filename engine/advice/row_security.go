package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
)

// rowSecurity finds tables without row-level security, and those where it is incomplete.
func rowSecurity(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	found, err := s.halfSecured(ctx)
	if err != nil {
		return nil, err
	}
	type row struct {
		table
		Without, All int64
	}
	without, err := list[row](ctx, s, `
		select nspname, relname, count(*) over (), everything from (
			select n.nspname, t.relname, count(*) over () as everything,
				t.relrowsecurity or exists (select from pg_policy p where p.polrelid = t.oid) as secured
			from pg_class t join pg_namespace n on n.oid = t.relnamespace
			where %s and t.relkind in ('r', 'p')) x
		where not secured order by 1, 2`)
	if err != nil || len(without) == 0 {
		return found, err
	}
	names := make([]string, len(without))
	for i, r := range without {
		names[i] = r.String()
	}
	return append(found, s.withoutRowSecurity(names, without[0].Without, without[0].All, s.enableRowSecurity(without[0].table))), nil
}

// halfSecured finds tables that have either policies or row-level security, but not both.
func (s *Session) halfSecured(ctx context.Context) ([]model.Recommendation, error) {
	type row struct {
		table
		Policies int64
	}
	rows, err := list[row](ctx, s, `
		select n.nspname, t.relname, (select count(*) from pg_policy p where p.polrelid = t.oid)
		from pg_class t join pg_namespace n on n.oid = t.relnamespace
		where %s and t.relkind in ('r', 'p') and t.relrowsecurity <> exists (select from pg_policy p where p.polrelid = t.oid)
		order by 1, 2`)
	var found []model.Recommendation
	for _, r := range rows {
		if r.Policies == 0 {
			found = append(found, s.withoutPolicy(r.table))
		} else {
			found = append(found, s.policiesOff(r.table, r.Policies))
		}
	}
	return found, err
}

func (s *Session) enableRowSecurity(t table) *model.RecommendedCall {
	return call("POST", s.Database, "/rls", map[string]any{"schema": t.Schema, "table": t.Table, "enabled": true})
}

func (s *Session) withoutPolicy(t table) model.Recommendation {
	rec := s.about("rls_without_policy", model.SeverityWarning, t.String(), "Row-level security without a policy",
		fmt.Sprintf("Row-level security is on for %s, and there is no policy: nobody but its owner sees or changes a row.", t))
	rec.Category = model.CategorySecurity
	rec.Evidence = map[string]any{"table": t.String(), "policies": 0}
	rec.SQL = "CREATE POLICY " + pgx.Identifier{"readers"}.Sanitize() + " ON " + t.sql() + " FOR SELECT USING (true)"
	rec.Caution = "This one lets every role that may read the table see all of its rows; write the condition your application needs."
	return rec
}

func (s *Session) policiesOff(t table, policies int64) model.Recommendation {
	rec := s.about("rls_policies_disabled", model.SeverityWarning, t.String(), "Policies that are not in force",
		fmt.Sprintf("%s has %d policies, and row-level security is off for it: they protect nothing.", t, policies))
	rec.Category = model.CategorySecurity
	rec.Evidence = map[string]any{"table": t.String(), "policies": policies}
	rec.Action = s.enableRowSecurity(t)
	rec.Caution = "Roles other than the owner then see only what the policies let them."
	return rec
}

func (s *Session) withoutRowSecurity(names []string, without, all int64, first *model.RecommendedCall) model.Recommendation {
	rec := s.about("rls_disabled", model.SeverityInfo, "", "Tables without row-level security",
		fmt.Sprintf("%d of %d tables have no row-level security: every role that may read them sees every row.", without, all))
	rec.Category = model.CategorySecurity
	rec.Evidence = map[string]any{"tables": without, "names": names}
	rec.Action = first
	rec.Caution = "Without a policy, roles other than the owner then see nothing. Where only the owner connects, it changes nothing."
	return rec
}
