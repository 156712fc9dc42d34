package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/engine/model"
	"holdfast/server/operator"
)

func newAdminUser() *cobra.Command {
	var in operator.NewUser
	create, a := newAdminCommand("create EMAIL", "Make a person's account; the password is read from standard input",
		model.ActionUserCreate, cobra.ExactArgs(1),
		func(_ *admin, cmd *cobra.Command, args []string) (_ any, err error) {
			in.Email = args[0]
			in.Password, err = readPassword(cmd.InOrStdin(), cmd.ErrOrStderr())
			return in, err
		},
		func(w io.Writer, u operator.User) { fmt.Fprintln(w, u.ID) })
	create.Flags().StringVar(&in.Role, "role", string(model.RoleOwner), "owner, admin or viewer")
	return group("user", "People who can sign in", a.inOrganization(create))
}

// readPassword reads one line; at a terminal it asks first, and what is typed
// is not shown.
func readPassword(r io.Reader, prompt io.Writer) (string, error) {
	if f, ok := r.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(prompt, "Password: ")
		line, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(prompt)
		return string(line), err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", usageError{errors.New("give the password on standard input, in one line")}
	}
	return line, nil
}

func newAdminSetupLink() *cobra.Command {
	cmd, a := newAdminCommand("setup-link", "Make a new one-time link to set up an owner's account",
		model.ActionSetupLinkCreate, cobra.NoArgs, nothing,
		func(w io.Writer, link operator.SetupLink) {
			fmt.Fprintf(w, "%s\nIt works once, until %s.\n", link.URL, link.ExpiresAt.Local().Format(time.DateTime))
		})
	return a.inOrganization(cmd)
}
