package remote

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newUser(s *session) *cobra.Command {
	return Group("user", "People who can sign in to the console",
		newUserList(s), newUserInvite(s), newUserRole(s), newUserLink(s), newUserDelete(s))
}

func newUserList(s *session) *cobra.Command {
	return s.command("list", "Show the people", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, t.api.Users(t.ctx, client.UserOptions{}), "there are no people", []string{"E-MAIL", "ID", "ROLE", "LAST SIGN-IN"},
			func(u wire.User) []string {
				last := Ago(u.LastSignInAt)
				if !u.HasPassword {
					last = "invited"
				}
				return []string{u.Email, u.ID, string(u.Role), last}
			})
	})
}

func newUserInvite(s *session) *cobra.Command {
	role := string(wire.RoleViewer)
	cmd := s.command("invite EMAIL", "Make a person's account, and the link to set its password", cobra.ExactArgs(1), func(t *task, args []string) error {
		return shows(t, func(w io.Writer, made wire.InvitedUser) {
			fmt.Fprintln(w, made.SetupLink.URL)
			t.note("pass this link on to %s; it works once, until %s", made.User.Email, formatTime(&made.SetupLink.ExpiresAt))
		})(t.api.InviteUser(t.ctx, wire.InviteUser{Email: args[0], Role: wire.UserRole(role)}))
	})
	cmd.Long = "Make a person's account, and the link to set its password. A key invites viewers only, and needs to hold what a\n" +
		"viewer may do. Owners and admins are invited in the console, or with `holdfast admin user`."
	cmd.Flags().StringVar(&role, "role", role, "owner, admin or viewer")
	return cmd
}

func newUserRole(s *session) *cobra.Command {
	cmd := s.command("role EMAIL owner|admin|viewer", "Give a person another role", cobra.ExactArgs(2), func(t *task, args []string) error {
		id, err := t.userID(args[0])
		if err != nil {
			return err
		}
		return shows(t, func(w io.Writer, u wire.User) { fmt.Fprintf(w, "%s is %s\n", u.Email, u.Role) })(
			t.api.UpdateUser(t.ctx, id, wire.UpdateUser{Role: wire.UserRole(args[1])}))
	})
	return s.positions(cmd, userNames)
}

func newUserLink(s *session) *cobra.Command {
	cmd := s.command("link EMAIL", "Make a link with which a person sets a new password", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.userID(args[0])
		if err != nil {
			return err
		}
		return shows(t, func(w io.Writer, link wire.SetupLink) {
			fmt.Fprintln(w, link.URL)
			t.note("it works once, until %s", formatTime(&link.ExpiresAt))
		})(t.api.CreateSetupLink(t.ctx, id))
	})
	return s.positions(cmd, userNames)
}

func newUserDelete(s *session) *cobra.Command {
	cmd := s.command("delete EMAIL", "Remove a person's account, and sign the person out", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.userID(args[0])
		if err != nil {
			return err
		}
		if err := t.confirm("remove the account of %s", args[0]); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, _ wire.DeletedRecord) { fmt.Fprintf(w, "%s is removed\n", args[0]) })(t.api.DeleteUser(t.ctx, id))
	})
	return s.positions(cmd, userNames)
}

// userID returns the id of the person with the given id or e-mail address.
func (t *task) userID(name string) (string, error) {
	if isID(name, idUser) {
		return name, nil
	}
	if name == "" {
		return "", usagef("the argument that names the person is empty: say the e-mail address or the id")
	}
	for u, err := range t.api.Users(t.ctx, client.UserOptions{Email: name}) {
		if err != nil || strings.EqualFold(u.Email, name) {
			return u.ID, err
		}
	}
	return "", failf(exitNotFound, "there is no person %q; `holdfast user list` shows the people", name)
}

// userNames yields the people by e-mail address.
func userNames(t *task, _ []string, _ string) iter.Seq2[named, error] {
	return each(t.api.Users(t.ctx, client.UserOptions{}), func(u wire.User) named { return named{id: u.ID, name: u.Email, note: string(u.Role)} })
}

func newUserSession(s *session) *cobra.Command {
	return Group("session", "Where people are signed in", newUserSessionList(s), newUserSessionEnd(s), newUserSessionEndAll(s))
}

func newUserSessionList(s *session) *cobra.Command {
	var user string
	cmd := s.command("list", "Show where people are signed in", cobra.NoArgs, func(t *task, _ []string) (err error) {
		var o client.UserSessionOptions
		if user != "" {
			if o.UserID, err = t.userID(user); err != nil {
				return err
			}
		}
		return list(t, t.api.UserSessions(t.ctx, o), "nobody is signed in", []string{"ID", "PERSON", "FROM", "SINCE", "LAST SEEN", "BROWSER"},
			func(x wire.UserSession) []string {
				return []string{x.ID, x.Email, x.IP, Ago(&x.CreatedAt), Ago(&x.LastSeenAt), x.UserAgent}
			})
	})
	cmd.Flags().StringVar(&user, "user", "", "only those of the person with this e-mail address or id")
	flagWords(cmd, "user", s.complete(userNames))
	return cmd
}

func newUserSessionEnd(s *session) *cobra.Command {
	cmd := s.command("end SESSION", "End a session", cobra.ExactArgs(1), func(t *task, args []string) error {
		return shows(t, func(w io.Writer, ended wire.DeletedRecord) { fmt.Fprintf(w, "%s has ended\n", ended.ID) })(t.api.EndUserSession(t.ctx, args[0]))
	})
	return s.positions(cmd, func(t *task, _ []string, _ string) iter.Seq2[named, error] {
		return each(t.api.UserSessions(t.ctx, client.UserSessionOptions{}), func(x wire.UserSession) named { return named{id: x.ID, note: x.Email} })
	})
}

func newUserSessionEndAll(s *session) *cobra.Command {
	cmd := s.command("end-all EMAIL", "End every session of a person", cobra.ExactArgs(1), func(t *task, args []string) error {
		id, err := t.userID(args[0])
		if err != nil {
			return err
		}
		return shows(t, func(w io.Writer, e wire.EndedSessions) { fmt.Fprintf(w, "sessions ended: %d\n", e.Ended) })(t.api.EndUserSessions(t.ctx, id))
	})
	return s.positions(cmd, userNames)
}
