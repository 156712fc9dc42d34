package remote

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newDatabase(s *session) *cobra.Command {
	return Group("db", "Databases",
		newDatabaseList(s), newDatabaseCreate(s), newDatabaseGet(s), newDatabaseUpdate(s), newDatabaseDelete(s), newDatabaseRestart(s), newDatabaseUpgrade(s),
		newRotatePassword(s), newDatabaseURL(s), newDatabasePsql(s), newDatabaseEnv(s), newVersions(s), newDatabaseLog(s), newDatabaseMetrics(s), newDatabaseRole(s), newPostgresDatabases(s), newDatabaseSession(s), newDatabaseLocks(s), newDatabaseStatement(s), newDatabaseSizes(s),
		newDatabaseSettings(s), newReplication(s),
		newAllowlist(s), newSSL(s), newRLS(s))
}

// aboutDatabase returns a command whose first argument is a database.
func (s *session) aboutDatabase(use, short string, n cobra.PositionalArgs, do func(*task, wire.Database, []string) error) *cobra.Command {
	cmd := s.command(use, short, n, func(t *task, args []string) error {
		db, err := t.database(args[0])
		if err != nil {
			return err
		}
		return do(t, db, args[1:])
	})
	return s.positions(cmd, databaseNames)
}

func newDatabaseList(s *session) *cobra.Command {
	var status string
	cmd := s.command("list", "Show the databases", cobra.NoArgs, func(t *task, _ []string) error {
		return list(t, selected(t, client.Filter{}, t.databases(status)), "there are no databases; `holdfast db create NAME` makes one",
			[]string{"NAME", "ID", "STATUS", "VERSION", "SIZE", "LAST BACKUP", "CREATED"}, func(db wire.Database) []string {
				return []string{db.Name, db.ID, doing(db), text(db.Version), sizeOr(db.SizeBytes), Ago(db.LatestBackupAt), Ago(&db.CreatedAt)}
			})
	})
	cmd.Flags().StringVar(&status, "status", "", "only those with this status, such as available or failed")
	return cmd
}

// doing returns a database's status and its operation's progress.
func doing(db wire.Database) string {
	if db.Operation == nil && db.Asleep {
		return "asleep"
	}
	if db.Operation == nil {
		return string(db.Status)
	}
	return fmt.Sprintf("%s (%s %d%%)", db.Status, db.Operation.Type, db.Operation.ProgressPercent)
}

func newDatabaseCreate(s *session) *cobra.Command {
	var user, version string
	var withPassword, replicates bool
	var sleep time.Duration
	cmd := s.command("create NAME", "Make a database", cobra.ExactArgs(1), func(t *task, args []string) error {
		in := wire.CreateDatabase{Name: args[0], DBUser: orNil(user), Version: orNil(version)}
		if replicates {
			in.LogicalReplication = &replicates
		}
		var err error
		if in.Project, err = t.projectForNew(); err != nil {
			return err
		}
		if withPassword {
			password, err := Secret(t.ctx, t.cmd.ErrOrStderr(), "Password of the database's owner")
			if err != nil {
				return err
			}
			in.Password = orNil(password)
		}
		if sleep != 0 {
			in.SleepAfterSeconds = new(wire.WholeNumber(sleep.Seconds()))
		}
		m := t.meter("creating " + in.Name)
		created, err := t.api.CreateDatabase(t.ctx, in)
		m.stop()
		t.noteGoesOn("`holdfast db get %s` shows it, if the request had arrived", in.Name)
		if err != nil {
			return err
		}
		return t.show(created, func(w io.Writer) {
			fmt.Fprintf(w, "created %s (%s), PostgreSQL %s at %s:%d\n",
				created.Name, created.ID, text(created.Version), created.Host, created.Port)
			t.note("`holdfast db psql %s` connects, `holdfast db url %s` shows the URL", created.Name, created.Name)
		})
	})
	cmd.Example = "  holdfast db create shop\n  holdfast db create shop --pg 16\n  holdfast db create shop --user owner --with-password < password.txt"
	cmd.Flags().BoolVar(&replicates, "logical-replication", false, "let clients stream the changes of the database")
	cmd.Flags().StringVar(&user, "user", "", "the role that owns the database (default: app)")
	cmd.Flags().StringVar(&version, "pg", "", "the major version of PostgreSQL (default: see \"holdfast db versions\")")
	cmd.Flags().DurationVar(&sleep, "sleep-after", 0, "stop the server after this long without connections, such as 10m, until somebody connects (default: it always runs)")
	cmd.Flags().BoolVar(&withPassword, "with-password", false, "read the owner's password from standard input (default: one is made)")
	return cmd
}

func newDatabaseGet(s *session) *cobra.Command {
	return s.aboutDatabase("get DATABASE", "Show a database", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return t.show(db, func(w io.Writer) { databaseDetails(w, db) })
		})
}

func databaseDetails(w io.Writer, db wire.Database) {
	connections := ""
	if db.ActiveConnections != nil {
		connections = fmt.Sprint(*db.ActiveConnections)
	}
	phase := ""
	if db.Operation != nil {
		phase = text(db.Operation.Phase)
	}
	details(w, append([]string{
		"name", db.Name, "id", db.ID, "project", db.Project,
		"status", doing(db), "reason", text(db.StatusReason), "phase", phase,
		"PostgreSQL", text(db.Version), "address", fmt.Sprintf("%s:%d", db.Host, db.Port),
		"owner", db.DBUser, "size", sizeOr(db.SizeBytes), "connections", connections,
		"last backup", formatTime(db.LatestBackupAt), "created", formatTime(&db.CreatedAt),
		"settings left out", strings.Join(db.SettingsLeftOut, ", "),
	}, ownProperties(db)...)...)
}

func newDatabaseDelete(s *session) *cobra.Command {
	return s.aboutDatabase("delete DATABASE", "Delete a database with its backups", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error { return t.deleteDatabase(db) })
}

func (t *task) deleteDatabase(db wire.Database) error {
	if err := t.confirm("delete the database %s (%s) with its backups", db.Name, db.ID); err != nil {
		return err
	}
	m := t.meter("deleting " + db.Name)
	deleted, err := t.api.DeleteDatabase(t.ctx, db.ID)
	m.stop()
	if err != nil {
		return err
	}
	return t.show(deleted, func(w io.Writer) {
		fmt.Fprintf(w, "deleted %s\n", db.Name)
		t.remarkRecoverable(deleted.Recoverable, "restore "+db.ID)
	})
}

func newRotatePassword(s *session) *cobra.Command {
	var terminate bool
	cmd := s.aboutDatabase("rotate-password DATABASE", "Give a database's owner a new password", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, func(w io.Writer, rotated wire.RotatedConnection) {
				fmt.Fprintf(w, "%s has a new password; %d sessions were ended\n", db.Name, rotated.SessionsTerminated)
				t.note("`holdfast db url %s` shows the new URL", db.Name)
			})(t.api.RotateDatabasePassword(t.ctx, db.ID, wire.RotatePassword{TerminateSessions: &terminate}))
		})
	cmd.Flags().BoolVar(&terminate, "terminate-sessions", false, "end the sessions that logged in with the old one")
	return cmd
}
