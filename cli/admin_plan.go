package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminSetPlan() *cobra.Command {
	cmd := newAdminCommand("set-plan ORG PLAN", "Put an organization on a plan of the config file, or on "+model.PlanSelfHosted,
		model.ActionPlanSet, cobra.ExactArgs(2),
		func(a *admin, _ *cobra.Command, args []string) (any, error) {
			a.org = args[0]
			return operator.Plan{Plan: args[1]}, nil
		},
		func(w io.Writer, o model.Organization) {
			fmt.Fprintf(w, "%s (%s) is on the plan %s\n", o.ID, o.Name, o.Plan)
		})
	cmd.Long = "Put an organization on a plan of the config file ([plans.NAME] with limits), or on " + model.PlanSelfHosted +
		",\nwhich has none. Its trial ends. What it has beyond the limits stays, and cannot grow."
	return cmd
}

func newAdminSetTrial() *cobra.Command {
	var length string
	cmd := newAdminCommand("set-trial ORG PLAN", "Give an organization another plan for some time",
		model.ActionTrialSet, cobra.ExactArgs(2),
		func(a *admin, _ *cobra.Command, args []string) (any, error) {
			a.org = args[0]
			life, err := parseLife("--for", length)
			return operator.Plan{Plan: args[1], For: life}, err
		},
		func(w io.Writer, o model.Organization) {
			fmt.Fprintf(w, "%s (%s) is on trial of %s until %s\n", o.ID, o.Name, o.Trial.Plan, o.Trial.EndsAt.Local().Format(time.DateTime))
		})
	cmd.Flags().StringVar(&length, "for", "14d", "how long, such as 36h or 14d")
	return cmd
}
