package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/remote"
	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminUser() *cobra.Command {
	var in operator.NewUser
	create, a := newAdminCommand("create EMAIL", "Make a person's account; the password is read from standard input",
		model.ActionUserCreate, cobra.ExactArgs(1),
		func(_ *admin, cmd *cobra.Command, args []string) (_ any, err error) {
			in.Email = args[0]
			in.Password, err = remote.Secret(cmd.Context(), cmd.ErrOrStderr(), "Password")
			return in, err
		},
		func(w io.Writer, u operator.User) { fmt.Fprintln(w, u.ID) })
	create.Flags().StringVar(&in.Role, "role", string(model.RoleOwner), "owner, admin or viewer")
	return group("user", "People who can sign in", a.inOrganization(create),
		newAdminUserList(), newAdminUserRole(), newAdminUserDelete(), newAdminUserSignOut())
}

func newAdminUserList() *cobra.Command {
	cmd, a := newAdminCommand("list", "Show the people", model.ActionUserList, cobra.NoArgs, nothing,
		func(w io.Writer, people []operator.User) {
			table(w, "ID\tE-MAIL\tROLE\tLAST SIGN-IN", func(w io.Writer) {
				for _, u := range people {
					last := cmp.Or(remote.Ago(u.LastSignInAt), "never")
					if !u.HasPassword {
						last = "invited"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", u.ID, u.Email, u.Role, last)
				}
			})
		})
	return a.inOrganization(cmd)
}

func newAdminUserRole() *cobra.Command {
	cmd, a := newAdminCommand("role EMAIL owner|admin|viewer", "Give a person another role", model.ActionUserRole, cobra.ExactArgs(2),
		func(_ *admin, _ *cobra.Command, args []string) (any, error) {
			return operator.NewRole{User: args[0], Role: args[1]}, nil
		},
		func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is %s\n", u.Email, u.Role) })
	return a.inOrganization(cmd)
}

func newAdminUserDelete() *cobra.Command {
	cmd, a := newAdminCommand("delete EMAIL", "Remove a person's account, and sign the person out", model.ActionUserDelete,
		cobra.ExactArgs(1), target, func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is removed\n", u.Email) })
	return a.inOrganization(a.asking(cmd, func(args []string) string {
		return fmt.Sprintf("remove the account of %s in the organization %s", args[0], a.org)
	}))
}

func newAdminUserSignOut() *cobra.Command {
	cmd, a := newAdminCommand("sign-out EMAIL", "End every session of a person", model.ActionSessionEndAll,
		cobra.ExactArgs(1), target, func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is signed out everywhere\n", u.Email) })
	return a.inOrganization(cmd)
}

func newAdminSetupLink() *cobra.Command {
	var in operator.NewSetupLink
	cmd, a := newAdminCommand("setup-link", "Make a new one-time link: to an owner's account, or to a new password with --email",
		model.ActionSetupLinkCreate, cobra.NoArgs,
		func(*admin, *cobra.Command, []string) (any, error) { return in, nil },
		func(w io.Writer, link operator.SetupLink) {
			fmt.Fprintf(w, "%s\nIt works once, until %s.\n", link.URL, link.ExpiresAt.Local().Format(time.DateTime))
		})
	cmd.Flags().StringVar(&in.User, "email", "", "of the person who lost the password (default: make a new owner)")
	return a.inOrganization(cmd)
}
