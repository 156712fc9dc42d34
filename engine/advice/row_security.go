package advice

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// rowSecurity finds tables without row-level security, and those where it is
// half set up.
func rowSecurity(ctx context.Context, s *Session) ([]model.Recommendation, error) {
	tables, err := postgres.Tables(ctx, s.Conn)
	if err != nil {
		return nil, err
	}
	var found []model.Recommendation
	var without []string
	var first *model.RecommendedCall
	for _, t := range tables {
		if t.Foreign() {
			continue
		}
		name := table{t.Schema, t.Name}
		enable := call("POST", s.Database, "/rls", map[string]any{"schema": t.Schema, "table": t.Name, "enabled": true})
		switch {
		case t.RLSEnabled && len(t.Policies) == 0:
			found = append(found, s.withoutPolicy(name))
		case !t.RLSEnabled && len(t.Policies) > 0:
			found = append(found, s.policiesOff(name, len(t.Policies), enable))
		case !t.RLSEnabled:
			if without = append(without, name.String()); first == nil {
				first = enable
			}
		}
	}
	found = found[:min(len(found), maxFindings)]
	if len(without) > 0 {
		found = append(found, s.withoutRowSecurity(without, len(tables), first))
	}
	return found, nil
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

func (s *Session) policiesOff(t table, policies int, enable *model.RecommendedCall) model.Recommendation {
	rec := s.about("rls_policies_disabled", model.SeverityWarning, t.String(), "Policies that are not in force",
		fmt.Sprintf("%s has %d policies, and row-level security is off for it: they protect nothing.", t, policies))
	rec.Category = model.CategorySecurity
	rec.Evidence = map[string]any{"table": t.String(), "policies": policies}
	rec.Action = enable
	rec.Caution = "Roles other than the owner then see only what the policies let them."
	return rec
}

func (s *Session) withoutRowSecurity(tables []string, all int, first *model.RecommendedCall) model.Recommendation {
	rec := s.about("rls_disabled", model.SeverityInfo, "", "Tables without row-level security",
		fmt.Sprintf("%d of %d tables have no row-level security: every role that may read them sees every row.", len(tables), all))
	rec.Category = model.CategorySecurity
	rec.Evidence = map[string]any{"tables": len(tables), "names": tables[:min(len(tables), maxFindings)]}
	rec.Action = first
	rec.Caution = "Without a policy, roles other than the owner then see nothing. Where only the owner connects, it changes nothing."
	return rec
}
