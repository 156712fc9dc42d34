package engine

import (
	"fmt"
	"time"

	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// plan returns a plan by its name; one the config file no longer has is an
// error, not a plan without limits.
func (e *Engine) plan(name string) (model.Plan, error) {
	if name == model.PlanSelfHosted {
		return model.Plan{Name: name}, nil
	}
	plan, ok := e.cfg.Plans[name]
	if !ok {
		return model.Plan{Name: name}, model.Errorf(model.CodeForbidden,
			"the plan %q of this organization is not in the config file: the operator must put it there, or choose another with `holdfast admin org set-plan`", name)
	}
	return plan, nil
}

// withinPlan runs change and refuses what it did when the organization then
// has more of something than its plan allows and than it had before. It is
// part of the transaction, so that any number of changes at once keep to the
// limit together.
func (e *Engine) withinPlan(tx *meta.Tx, organization string, change func() error) error {
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
	return e.allowed(tx, organization, before, after)
}

// allowed checks what a change would make of the totals.
func (e *Engine) allowed(tx *meta.Tx, organization string, before, after model.Totals) error {
	org, err := tx.Organizations().Get(organization)
	if err != nil {
		return err
	}
	plan, err := e.plan(org.PlanName(e.clock()))
	for _, metric := range model.Metrics() {
		used, wanted := before.Of(metric), after.Of(metric)
		if wanted <= used {
			continue
		}
		if err != nil { // only what grows needs to know the plan
			return err
		}
		if limit, limited := plan.Limits[metric]; limited && wanted > limit {
			return overLimit(plan.Name, metric, limit, used)
		}
	}
	return nil
}

// refuseFull refuses what would take more of a metric whose growth cannot be
// known beforehand, once all of it is in use.
func (e *Engine) refuseFull(tx *meta.Tx, organization string, metric model.Metric, used int64) error {
	plan, err := e.planOf(tx, organization)
	if err != nil {
		return err
	}
	if limit, limited := plan.Limits[metric]; limited && used >= limit {
		return overLimit(plan.Name, metric, limit, used)
	}
	return nil
}

// planOf returns the plan of an organization that is in force now.
func (e *Engine) planOf(tx *meta.Tx, organization string) (model.Plan, error) {
	org, err := tx.Organizations().Get(organization)
	if err != nil {
		return model.Plan{}, err
	}
	return e.plan(org.PlanName(e.clock()))
}

// refuseFullDatabases refuses another database when those there are fill what
// the plan allows them.
func (e *Engine) refuseFullDatabases(tx *meta.Tx, organization string) error {
	databases, err := allDatabases(tx, organization)
	if err != nil {
		return err
	}
	return e.refuseFull(tx, organization, model.MetricDatabaseBytes, e.databaseBytes(databases))
}

func overLimit(plan string, metric model.Metric, limit, used int64) error {
	return model.Errorf(model.CodeForbidden,
		"%s: the plan %s allows %d, and %d are in use; delete what is not needed, or have the operator choose a larger plan with `holdfast admin org set-plan`",
		metric, plan, limit, used)
}

// Account is an organization's plan and trial.
type Account struct {
	Organization model.Organization
	Plan         model.Plan // in force now
	Totals       model.Totals
}

// AccountGet returns the plan of the call's organization.
func (e *Engine) AccountGet(call *model.Call) (Account, error) {
	var a Account
	err := e.meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		if a.Organization, err = tx.Organizations().Get(call.Organization); err != nil {
			return err
		}
		a.Totals, err = tx.Totals(call.Organization)
		return err
	})
	call.Resource = organizationResource(a.Organization)
	if err == nil {
		// Of a plan that is gone only its name is known: nothing may grow.
		a.Plan, _ = e.plan(a.Organization.PlanName(e.clock()))
	}
	return a, err
}

func organizationResource(o model.Organization) model.Resource {
	return model.Resource{Type: model.ResourceOrganization, ID: o.ID, Name: o.Name}
}

// OrganizationSetPlan puts the call's organization on a plan, and ends its
// trial. What it has beyond the plan's limits stays, and cannot grow.
func (e *Engine) OrganizationSetPlan(call *model.Call, name string) (model.Organization, error) {
	if err := e.knownPlan(name); err != nil {
		return model.Organization{}, err
	}
	call.Note("plan", name)
	return e.changeOrganization(call, func(o *model.Organization) { o.Plan, o.Trial = name, nil })
}

// OrganizationSetTrial gives the call's organization another plan for some
// time; after it the organization is on its own plan again.
func (e *Engine) OrganizationSetTrial(call *model.Call, name string, length time.Duration) (model.Organization, error) {
	if err := e.knownPlan(name); err != nil {
		return model.Organization{}, err
	}
	if length <= 0 {
		return model.Organization{}, model.Invalid("for", "must be longer than nothing")
	}
	now := e.clock()
	trial := &model.Trial{Plan: name, StartedAt: now, EndsAt: now.Add(length)}
	call.Note("plan", name)
	call.Note("ends_at", trial.EndsAt.Format(time.RFC3339))
	return e.changeOrganization(call, func(o *model.Organization) { o.Trial = trial })
}

// knownPlan refuses names of plans that do not exist.
func (e *Engine) knownPlan(name string) error {
	if _, err := e.plan(name); err != nil {
		return model.Invalid("plan", "no plan %q in the config file; [plans.%s] makes one, %s is without limits", name, name, model.PlanSelfHosted)
	}
	return nil
}

func (e *Engine) changeOrganization(call *model.Call, change func(*model.Organization)) (model.Organization, error) {
	var org model.Organization
	err := e.change(call, func(tx *meta.Tx) (err error) {
		org, err = tx.Organizations().Update(call.Organization, func(o *model.Organization) error {
			change(o)
			return nil
		})
		call.Resource = organizationResource(org)
		return err
	})
	return org, err
}

// concludeTrials audits the ends of trials, each once.
func (e *Engine) concludeTrials() error {
	orgs, err := e.OrganizationList()
	if err != nil {
		return err
	}
	now := e.clock()
	for _, o := range orgs {
		if o.Trial == nil || o.Trial.Concluded || o.Trial.Active(now) {
			continue
		}
		call := e.system(model.ActionTrialEnd, o.ID, organizationResource(o))
		call.Note("plan", o.Trial.Plan)
		call.Note("back_on", o.PlanName(now))
		if _, err := e.changeOrganization(call, func(o *model.Organization) {
			if o.Trial != nil && !o.Trial.Active(now) {
				ended := *o.Trial
				ended.Concluded = true
				o.Trial = &ended
			}
		}); err != nil {
			return fmt.Errorf("conclude a trial: %w", err)
		}
	}
	return nil
}

// warnOfUnknownPlans says at the start which organizations cannot grow for
// want of their plan.
func (e *Engine) warnOfUnknownPlans() error {
	orgs, err := e.OrganizationList()
	for _, o := range orgs {
		if _, err := e.plan(o.PlanName(e.clock())); err != nil {
			e.log.Error("an organization can make nothing new: its plan is not in the config file", "organization", o.Name, "plan", o.PlanName(e.clock()))
		}
	}
	return err
}
