package operator

import (
	"context"
	"time"

	"holdfast/engine/model"
)

// Plan are the arguments of organization.set_plan and organization.set_trial.
type Plan struct {
	Plan string        `json:"plan"`
	For  time.Duration `json:"for"` // duration of a trial in nanoseconds
}

func planSet(_ context.Context, a Appliance, call *model.Call, in Plan) (any, error) {
	org, err := a.Access.OrganizationSetPlan(call, in.Plan)
	return viewOrganization(org), err
}

func trialSet(_ context.Context, a Appliance, call *model.Call, in Plan) (any, error) {
	org, err := a.Access.OrganizationSetTrial(call, in.Plan, in.For)
	return viewOrganization(org), err
}
