package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/engine/model"
)

func newAdminOrg() *cobra.Command {
	create, _ := newAdminCommand("create NAME", "Make an organization with a project `default`",
		model.ActionOrganizationCreate, cobra.ExactArgs(1), named,
		func(w io.Writer, o model.Organization) { fmt.Fprintln(w, o.ID) })
	list, _ := newAdminCommand("list", "Show the organizations", model.ActionOrganizationList, cobra.NoArgs, nothing,
		func(w io.Writer, orgs []model.Organization) {
			table(w, "ID\tNAME\tPLAN\tCREATED", func(w io.Writer) {
				for _, o := range orgs {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", o.ID, o.Name, o.PlanName(time.Now()), o.CreatedAt.Format(time.DateTime))
				}
			})
		})
	return group("org", "Organizations", create, list, newAdminSetPlan(), newAdminSetTrial())
}

func newAdminProject() *cobra.Command {
	create, c := newAdminCommand("create NAME", "Make a project", model.ActionProjectCreate, cobra.ExactArgs(1), named,
		func(w io.Writer, p model.Project) { fmt.Fprintln(w, p.ID) })
	list, l := newAdminCommand("list", "Show the projects", model.ActionProjectList, cobra.NoArgs, nothing,
		func(w io.Writer, projects []model.Project) {
			table(w, "ID\tNAME\tCREATED", func(w io.Writer) {
				for _, p := range projects {
					fmt.Fprintf(w, "%s\t%s\t%s\n", p.ID, p.Name, p.CreatedAt.Format(time.DateTime))
				}
			})
		})
	return group("project", "Projects", c.inOrganization(create), l.inOrganization(list))
}
