package core

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Plan returns a plan by name. A plan that the config file no longer has is an error,
// not a plan without limits.
func (c *Core) Plan(name string) (model.Plan, error) {
	if name == model.PlanSelfHosted {
		return model.Plan{Name: name}, nil
	}
	plan, ok := c.Config.Plans[name]
	if !ok {
		return model.Plan{Name: name}, model.Errorf(model.CodeForbidden,
			"the plan %q of this organization is not in the config file: the operator must put it there, or choose another with `holdfast admin org set-plan`", name)
	}
	return plan, nil
}

// WithinPlan runs change and returns an error if the organization then has more of a
// metric than its plan allows and more than before. It runs in the transaction, so the
// limit also holds for concurrent changes.
func (c *Core) WithinPlan(tx *meta.Tx, organization string, change func() error) error {
	before, err := tx.Totals(organization)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := tx.Totals(organization)
	if err != nil || after == before {
		return err
	}
	return c.Allowed(tx, organization, before, after)
}

// Allowed checks the totals that a change would lead to.
func (c *Core) Allowed(tx *meta.Tx, organization string, before, after model.Totals) error {
	org, err := tx.Organizations().Get(organization)
	if err != nil {
		return err
	}
	plan, err := c.Plan(org.PlanName(c.Clock()))
	for _, metric := range model.Metrics() {
		used, wanted := before.Of(metric), after.Of(metric)
		if wanted <= used {
			continue
		}
		if err != nil { // the plan matters only for growth
			return err
		}
		if limit, limited := plan.Limits[metric]; limited && wanted > limit {
			return overLimit(plan.Name, metric, limit, used)
		}
	}
	return nil
}

// RefuseFull refuses an operation on a metric whose growth cannot be predicted, once
// the limit is reached.
func (c *Core) RefuseFull(tx *meta.Tx, organization string, metric model.Metric, used int64) error {
	plan, err := c.PlanOf(tx, organization)
	if err != nil {
		return err
	}
	if limit, limited := plan.Limits[metric]; limited && used >= limit {
		return overLimit(plan.Name, metric, limit, used)
	}
	return nil
}

// PlanOf returns the plan of an organization that is in effect now.
func (c *Core) PlanOf(tx *meta.Tx, organization string) (model.Plan, error) {
	org, err := tx.Organizations().Get(organization)
	if err != nil {
		return model.Plan{}, err
	}
	return c.Plan(org.PlanName(c.Clock()))
}

func overLimit(plan string, metric model.Metric, limit, used int64) error {
	return model.Errorf(model.CodeForbidden,
		"%s: the plan %s allows %d, and %d are in use; delete what is not needed, or have the operator choose a larger plan with `holdfast admin org set-plan`",
		metric, plan, limit, used)
}
