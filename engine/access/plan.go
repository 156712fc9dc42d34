package access

import (
	"fmt"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Account is an organization's plan and trial.
type Account struct {
	Organization model.Organization
	Plan         model.Plan // in effect now
	Totals       model.Totals
}

// AccountGet returns the plan of the call's organization.
func (s *Service) AccountGet(call *model.Call) (Account, error) {
	var a Account
	err := s.core.Meta.ViewFlushed(func(tx *meta.Tx) (err error) {
		if a.Organization, err = tx.Organizations().Get(call.Organization); err != nil {
			return err
		}
		a.Totals, err = tx.Totals(call.Organization)
		return err
	})
	call.Resource = core.OrganizationResource(a.Organization)
	if err == nil {
		// Only the name of a removed plan is known: nothing may grow.
		a.Plan, _ = s.core.Plan(a.Organization.PlanName(s.core.Clock()))
	}
	return a, err
}

// OrganizationSetPlan assigns a plan to the call's organization and ends its trial.
// Anything beyond the plan's limits stays, but cannot grow.
func (s *Service) OrganizationSetPlan(call *model.Call, name string) (model.Organization, error) {
	if err := s.knownPlan(name); err != nil {
		return model.Organization{}, err
	}
	call.Note("plan", name)
	return s.changeOrganization(call, func(o *model.Organization) { o.Plan, o.Trial = name, nil })
}

// OrganizationSetTrial gives the call's organization another plan for a limited time,
// after which its own plan applies again.
func (s *Service) OrganizationSetTrial(call *model.Call, name string, length time.Duration) (model.Organization, error) {
	if err := s.knownPlan(name); err != nil {
		return model.Organization{}, err
	}
	if length <= 0 {
		return model.Organization{}, model.Invalid("for", "must be longer than nothing")
	}
	now := s.core.Clock()
	trial := &model.Trial{Plan: name, StartedAt: now, EndsAt: now.Add(length)}
	call.Note("plan", name)
	call.Note("ends_at", trial.EndsAt.Format(time.RFC3339))
	return s.changeOrganization(call, func(o *model.Organization) { o.Trial = trial })
}

// knownPlan refuses unknown plan names.
func (s *Service) knownPlan(name string) error {
	if _, err := s.core.Plan(name); err != nil {
		return model.Invalid("plan", "no plan %q in the config file; [plans.%s] makes one, %s is without limits", name, name, model.PlanSelfHosted)
	}
	return nil
}

func (s *Service) changeOrganization(call *model.Call, change func(*model.Organization)) (model.Organization, error) {
	var org model.Organization
	err := s.core.Change(call, func(tx *meta.Tx) (err error) {
		org, err = tx.Organizations().Update(call.Organization, func(o *model.Organization) error {
			change(o)
			return nil
		})
		call.Resource = core.OrganizationResource(org)
		return err
	})
	return org, err
}

// ConcludeTrials audits the end of each trial once, not by a clock that may be wrong.
func (s *Service) ConcludeTrials() error {
	orgs, err := s.OrganizationList()
	if err != nil {
		return err
	}
	now := s.core.Clock()
	for _, o := range orgs {
		if o.Trial == nil || o.Trial.Concluded || o.Trial.Active(now) || !s.core.MayRemove(o.Trial.EndsAt) {
			continue
		}
		call := s.core.System(model.ActionTrialEnd, o.ID, core.OrganizationResource(o))
		call.Note("plan", o.Trial.Plan)
		call.Note("back_on", o.PlanName(now))
		if _, err := s.changeOrganization(call, func(o *model.Organization) {
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

// WarnOfUnknownPlans logs at start which organizations cannot grow because their plan is
// unknown.
func (s *Service) WarnOfUnknownPlans() error {
	orgs, err := s.OrganizationList()
	for _, o := range orgs {
		if _, err := s.core.Plan(o.PlanName(s.core.Clock())); err != nil {
			s.core.Log.Error("an organization can make nothing new: its plan is not in the config file", "organization", o.Name, "plan", o.PlanName(s.core.Clock()))
		}
	}
	return err
}
