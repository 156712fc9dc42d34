package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
)

func newAdminOrg() *cobra.Command {
	create := newAdminCommand("create NAME", "Make an organization with a project `default`",
		model.ActionOrganizationCreate, cobra.ExactArgs(1), named,
		func(w io.Writer, o model.Organization) { fmt.Fprintln(w, o.ID) })
	list := newAdminCommand("list", "Show the organizations", model.ActionOrganizationList, cobra.NoArgs, nothing,
		rows("ID\tNAME\tPLAN\tCREATED", func(o model.Organization) []any {
			return []any{o.ID, o.Name, o.PlanName(time.Now()), o.CreatedAt.Format(time.DateTime)}
		}))
	return group("org", "Organizations", create, list, newAdminSetPlan(), newAdminSetTrial())
}

func newAdminProject() *cobra.Command {
	create := newAdminCommand("create NAME", "Make a project", model.ActionProjectCreate, cobra.ExactArgs(1), named,
		func(w io.Writer, p model.Project) { fmt.Fprintln(w, p.ID) }, inOrganization)
	list := newAdminCommand("list", "Show the projects", model.ActionProjectList, cobra.NoArgs, nothing,
		rows("ID\tNAME\tCREATED", func(p model.Project) []any { return []any{p.ID, p.Name, p.CreatedAt.Format(time.DateTime)} }), inOrganization)
	return group("project", "Projects", create, list)
}
