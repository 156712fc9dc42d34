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
	create := newAdminCommand("create EMAIL", "Make a person's account; the password is read from standard input",
		model.ActionUserCreate, cobra.ExactArgs(1),
		func(_ *admin, cmd *cobra.Command, args []string) (_ any, err error) {
			in.Email = args[0]
			in.Password, err = remote.Secret(cmd.Context(), cmd.ErrOrStderr(), "Password")
			return in, err
		},
		func(w io.Writer, u operator.User) { fmt.Fprintln(w, u.ID) }, inOrganization)
	create.Flags().StringVar(&in.Role, "role", string(model.RoleOwner), "owner, admin or viewer")
	return group("user", "People who can sign in", create,
		newAdminUserList(), newAdminUserRole(), newAdminUserDelete(), newAdminUserSignOut())
}

func newAdminUserList() *cobra.Command {
	return newAdminCommand("list", "Show the people", model.ActionUserList, cobra.NoArgs, nothing,
		rows("ID\tE-MAIL\tROLE\tLAST SIGN-IN", func(u operator.User) []any {
			last := cmp.Or(remote.Ago(u.LastSignInAt), "never")
			if !u.HasPassword {
				last = "invited"
			}
			return []any{u.ID, u.Email, u.Role, last}
		}), inOrganization)
}

func newAdminUserRole() *cobra.Command {
	return newAdminCommand("role EMAIL owner|admin|viewer", "Give a person another role", model.ActionUserRole, cobra.ExactArgs(2),
		func(_ *admin, _ *cobra.Command, args []string) (any, error) {
			return operator.NewRole{User: args[0], Role: args[1]}, nil
		},
		func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is %s\n", u.Email, u.Role) }, inOrganization)
}

func newAdminUserDelete() *cobra.Command {
	return newAdminCommand("delete EMAIL", "Remove a person's account, and sign the person out", model.ActionUserDelete,
		cobra.ExactArgs(1), target, func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is removed\n", u.Email) }, inOrganization,
		asking(func(a *admin, args []string) string {
			return fmt.Sprintf("remove the account of %s in the organization %s", args[0], a.org)
		}))
}

func newAdminUserSignOut() *cobra.Command {
	return newAdminCommand("sign-out EMAIL", "End every session of a person", model.ActionSessionEndAll,
		cobra.ExactArgs(1), target, func(w io.Writer, u operator.User) { fmt.Fprintf(w, "%s is signed out everywhere\n", u.Email) }, inOrganization)
}

func newAdminSetupLink() *cobra.Command {
	var in operator.NewSetupLink
	cmd := newAdminCommand("setup-link", "Make a new one-time link: to an owner's account, or to a new password with --email",
		model.ActionSetupLinkCreate, cobra.NoArgs,
		func(*admin, *cobra.Command, []string) (any, error) { return in, nil },
		func(w io.Writer, link operator.SetupLink) {
			fmt.Fprintf(w, "%s\nIt works once, until %s.\n", link.URL, link.ExpiresAt.Local().Format(time.DateTime))
		}, inOrganization)
	cmd.Flags().StringVar(&in.User, "email", "", "of the person who lost the password (default: make a new owner)")
	return cmd
}
