package cli

import (
	"errors"
	"fmt"

	"holdfast/engine/model"
)

// readPlans parses the tables [plans.NAME] of the config file. value is nil if
// there are none.
func readPlans(value any) (map[string]model.Plan, error) {
	plans := map[string]model.Plan{}
	if value == nil {
		return plans, nil
	}
	tables, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("plans: must be tables such as [plans.starter]")
	}
	for name, table := range tables {
		limits, err := readLimits(name, table)
		if err != nil {
			return nil, err
		}
		if plans[name], err = model.NewPlan(name, limits); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

func readLimits(plan string, value any) (map[string]int64, error) {
	table, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("plans.%s: must be a table with limits, such as databases = 3", plan)
	}
	limits := map[string]int64{}
	for metric, value := range table {
		limit, ok := value.(int64)
		if !ok {
			return nil, fmt.Errorf("plans.%s.%s: must be a whole number", plan, metric)
		}
		limits[metric] = limit
	}
	return limits, nil
}
