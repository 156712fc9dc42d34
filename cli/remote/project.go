package remote

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newProject(s *session) *cobra.Command {
	return Group("project", "Projects, which group databases and buckets",
		newProjectList(s), newProjectCreate(s), newProjectRename(s), newProjectDelete(s))
}

func newProjectList(s *session) *cobra.Command {
	return s.command("list", "Show the projects", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, t.api.Projects(t.ctx, client.ProjectOptions{}), "there are no projects",
			[]string{"NAME", "ID", "CREATED"}, func(p wire.Project) []string { return []string{p.Name, p.ID, Ago(&p.CreatedAt)} })
	})
}

func newProjectCreate(s *session) *cobra.Command {
	return s.command("create NAME", "Make a project", cobra.ExactArgs(1), func(t *task, args []string) error {
		return shows(t, func(w io.Writer, p wire.Project) { fmt.Fprintf(w, "created %s (%s)\n", p.Name, p.ID) })(
			t.api.CreateProject(t.ctx, wire.CreateProject{Name: args[0]}))
	})
}

func newProjectRename(s *session) *cobra.Command {
	cmd := s.command("rename PROJECT NAME", "Give a project another name", cobra.ExactArgs(2), func(t *task, args []string) error {
		id, err := t.projectID(args[0])
		if err != nil {
			return err
		}
		return shows(t, func(w io.Writer, p wire.Project) { fmt.Fprintf(w, "%s is now %s\n", p.ID, p.Name) })(
			t.api.UpdateProject(t.ctx, id, wire.UpdateProject{Name: args[1]}))
	})
	return s.positions(cmd, projectNames)
}

func newProjectDelete(s *session) *cobra.Command {
	cmd := s.command("delete PROJECT", "Delete a project that holds nothing", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.projectID(args[0])
		if err != nil {
			return err
		}
		if err := t.confirm("delete the project %s", args[0]); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, _ wire.DeletedRecord) { fmt.Fprintf(w, "deleted %s\n", args[0]) })(t.api.DeleteProject(t.ctx, id))
	})
	return s.positions(cmd, projectNames)
}
