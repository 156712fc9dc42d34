package advice

import (
	"fmt"

	"holdfast/engine/model"
)

// fullPlan reports that a limit of the plan is nearly reached.
func fullPlan(f Facts) (found []model.Recommendation) {
	for _, metric := range model.Metrics() {
		limit, limited := f.Plan.Limits[metric]
		used := f.Used(metric)
		if !limited || used == 0 || float64(used) < f.Limits.PlanUsed*float64(limit) {
			continue
		}
		severity := model.SeverityWarning
		if used >= limit {
			severity = model.SeverityCritical
		}
		found = append(found, model.Recommendation{
			Code: "plan_limit_near", Severity: severity, Category: model.CategoryCapacity,
			Title:    "A limit of the plan is near",
			Message:  fmt.Sprintf("%d of the %d %s that the plan %s allows are in use. What goes beyond is refused: delete what is not needed, or ask for a larger plan.", used, limit, metric, f.Plan.Name),
			Object:   string(metric),
			Evidence: map[string]any{"metric": metric, "used": used, "limit": limit, "plan": f.Plan.Name},
			Action:   &model.RecommendedCall{Method: "GET", Path: "/v1/account/usage"},
		})
	}
	return found
}
