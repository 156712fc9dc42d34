package remote

import (
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newDatabaseRole(s *session) *cobra.Command {
	return Group("role", "Roles of a database besides its owner",
		newRoleList(s), newRoleCreate(s), newRoleShow(s), newRoleUpdate(s), newRoleRotate(s), newRoleDelete(s))
}

// aboutRole returns a command whose arguments are a database and a role.
func (s *session) aboutRole(use, short string, do func(t *task, db wire.Database, role string) error) *cobra.Command {
	cmd := s.aboutDatabase(use+" DATABASE ROLE", short, cobra.ExactArgs(2), func(t *task, db wire.Database, args []string) error {
		return do(t, db, args[0])
	})
	return s.positions(cmd, databaseNames, roleNames)
}

// roleNames yields the roles of the database that the first argument names.
func roleNames(t *task, before []string, _ string) iter.Seq2[named, error] {
	return t.namesIn(before[0], func(db string) ([]named, error) {
		found, err := t.api.ListDatabaseRoles(t.ctx, db)
		var names []named
		for _, r := range found.Roles {
			names = append(names, named{name: r.Name, note: string(r.Access)})
		}
		return names, err
	})
}

func newRoleList(s *session) *cobra.Command {
	return s.aboutDatabase("list DATABASE", "Show the roles of a database", cobra.ExactArgs(1), func(t *task, db wire.Database, _ []string) error {
		found, err := t.api.ListDatabaseRoles(t.ctx, db.ID)
		if err != nil {
			return err
		}
		rows := [][]string{}
		for _, r := range found.Roles {
			rows = append(rows, []string{r.Name, string(r.Access), roleLimit(r), passwordAge(r), Ago(&r.CreatedAt)})
		}
		return t.table(nil, found, fmt.Sprintf("it has only its owner; `holdfast db role create %s NAME` makes a role", db.Name),
			[]string{"ROLE", "ACCESS", "SESSIONS", "PASSWORD", "CREATED"}, rows)
	})
}

func roleLimit(r wire.DatabaseRole) string {
	if r.ConnectionLimit == nil {
		return "as the owner"
	}
	return fmt.Sprintf("at most %d", *r.ConnectionLimit)
}

func passwordAge(r wire.DatabaseRole) string {
	if r.PasswordSetAt == nil {
		return "none"
	}
	return Ago(r.PasswordSetAt)
}

func roleDetails(w io.Writer, r wire.DatabaseRole) {
	details(w, "role", r.Name, "access", string(r.Access), "sessions", roleLimit(r), "password", passwordAge(r),
		"created", formatTime(&r.CreatedAt), "changed", formatTime(&r.UpdatedAt))
}

func newRoleCreate(s *session) *cobra.Command {
	var access string
	var limit int
	cmd := s.aboutDatabase("create DATABASE ROLE", "Make a role, and show its password once", cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			in := wire.CreateDatabaseRole{Name: args[0], Access: wire.RoleAccess(access)}
			if t.cmd.Flags().Changed("connection-limit") {
				in.ConnectionLimit = new(wire.WholeNumber(limit))
			}
			return t.showSecret("created")(t.api.CreateDatabaseRole(t.ctx, db.ID, in))
		})
	cmd.Example = "  holdfast db role create shop reports\n  holdfast db role create shop worker --access write --connection-limit 5\n  holdfast db role create shop tests --access create"
	cmd.Flags().StringVar(&access, "access", string(wire.AccessRead), "what it may do: read, write, owner, or create databases beside this one")
	cmd.Flags().IntVar(&limit, "connection-limit", 0, "how many sessions it may have at a time (default: as many as the owner)")
	flagWords(cmd, "access", cobra.FixedCompletions([]cobra.Completion{"read", "write", "owner", "create"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// showSecret returns a function that prints a role with its new password.
func (t *task) showSecret(done string) func(wire.DatabaseRoleSecret, error) error {
	return shows(t, func(w io.Writer, r wire.DatabaseRoleSecret) {
		fmt.Fprintf(w, "%s %s, which may %s; this is the only time that its password is shown:\n%s\n", done, r.Name, allows(r.Access), r.Connection.ConnectionURL)
	})
}

func allows(access wire.RoleAccess) string {
	switch access {
	case wire.AccessRead:
		return "read"
	case wire.AccessWrite:
		return "read and write rows"
	case wire.AccessCreate:
		return "create databases beside this one"
	default:
		return "do what the owner may"
	}
}

func newRoleShow(s *session) *cobra.Command {
	return s.aboutRole("show", "Show a role", func(t *task, db wire.Database, role string) error {
		return shows(t, roleDetails)(t.api.GetDatabaseRole(t.ctx, db.ID, role))
	})
}

func newRoleUpdate(s *session) *cobra.Command {
	var access, limit string
	cmd := s.aboutRole("update", "Change what a role may do", func(t *task, db wire.Database, role string) error {
		in := wire.UpdateDatabaseRole{Access: orNil(wire.RoleAccess(access))}
		switch limit {
		case "":
		case "default":
			in.ConnectionLimit = wire.Default[wire.WholeNumber]()
		default:
			n, err := strconv.Atoi(limit)
			if err != nil {
				return usagef("--connection-limit: %q is neither a number nor default", limit)
			}
			in.ConnectionLimit = wire.SetTo(wire.WholeNumber(n))
		}
		if access == "" && limit == "" {
			return usagef("nothing to change: give --access or --connection-limit")
		}
		return shows(t, roleDetails)(t.api.UpdateDatabaseRole(t.ctx, db.ID, role, in))
	})
	cmd.Flags().StringVar(&access, "access", "", "what it may do: read, write, owner, or create databases beside this one; a change ends its sessions")
	cmd.Flags().StringVar(&limit, "connection-limit", "", "how many sessions it may have at a time, or default for as many as the owner")
	flagWords(cmd, "access", cobra.FixedCompletions([]cobra.Completion{"read", "write", "owner", "create"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func newRoleRotate(s *session) *cobra.Command {
	return s.aboutRole("rotate-password", "Give a role a new password, show it once, and end its sessions", func(t *task, db wire.Database, role string) error {
		return t.showSecret("changed the password of")(t.api.RotateDatabaseRolePassword(t.ctx, db.ID, role))
	})
}

func newRoleDelete(s *session) *cobra.Command {
	return s.aboutRole("delete", "Delete a role; what it made stays, for the owner to use or drop", func(t *task, db wire.Database, role string) error {
		if err := t.confirm("delete the role %s of %s, which ends its sessions", role, db.Name); err != nil {
			return err
		}
		return shows(t, func(w io.Writer, r wire.DeletedDatabaseRole) {
			fmt.Fprintf(w, "deleted %s; %d sessions were ended\n", r.Name, r.SessionsTerminated)
			switch {
			case r.DatabaseDropped != nil:
				fmt.Fprintf(w, "the database %s that was made for it was empty, and is dropped\n", *r.DatabaseDropped)
			case r.DatabaseKept != nil:
				fmt.Fprintf(w, "the database %s that was made for it is in use, and stays: any role with access create can use and drop it\n", *r.DatabaseKept)
			}
		})(t.api.DeleteDatabaseRole(t.ctx, db.ID, role))
	})
}
