package remote

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// The formats that `db env` prints.
const (
	formatShell  = "shell"
	formatDotenv = "dotenv"
)

func newDatabaseEnv(s *session) *cobra.Command {
	format := formatShell
	var verify verifyFlags
	cmd := s.aboutDatabase("env DATABASE", "Print a database's connection as environment variables, password included", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			if format != formatShell && format != formatDotenv {
				return usagef("format: %q is neither %s nor %s", format, formatShell, formatDotenv)
			}
			return shows(t, func(w io.Writer, e environment) { e.print(w, format) })(verify.environment(t, db.ID))
		})
	cmd.Long = "Print a database's connection as environment variables, password included. With --verify programs verify the\n" +
		"server (sslmode verify-full): DATABASE_URL is then what `db url --driver libpq` prints."
	cmd.Example = "  eval \"$(holdfast db env shop)\"\n  holdfast db env shop --format dotenv > .env\n  eval \"$(holdfast db env shop --verify)\""
	verify.register(cmd)
	cmd.Flags().StringVar(&format, "format", format, "shell (export NAME='value') or dotenv (NAME='value')")
	flagWords(cmd, "format", cobra.FixedCompletions([]cobra.Completion{formatShell, formatDotenv}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Environ returns the environment for a program that uses a database: base,
// with libpq's variables set to this database only. A password in base stays if
// the appliance does not know the database's.
func Environ(base []string, e wire.Environment) []string {
	own := []string{"PGPASSWORD", "PGPASSFILE"}
	if e.Password != "" {
		own = nil
	}
	base = withoutTargets(slices.Clone(base), own...)
	for _, v := range (environment{Environment: e}).variables() {
		if v.value != "" {
			base = append(base, v.name+"="+v.value)
		}
	}
	return base
}

func newDatabasePsql(s *session) *cobra.Command {
	cmd := s.aboutDatabase("psql DATABASE [-- ARGUMENT…]", "Open psql on a database", cobra.MinimumNArgs(1),
		func(t *task, db wire.Database, args []string) error {
			if err := refuseConnecting(db); err != nil {
				return err
			}
			program, err := exec.LookPath("psql")
			if err != nil {
				return failf(exitError, "there is no psql in PATH; install PostgreSQL's client programs (Debian: postgresql-client)")
			}
			c, err := t.databaseConnection(db.ID, client.ConnectionOptions{})
			if err != nil {
				return err
			}
			if err := syscall.Exec(program, append([]string{"psql"}, args...), Environ(os.Environ(), c.Environment)); err != nil {
				return fmt.Errorf("run %s: %w", program, err)
			}
			return nil
		})
	cmd.Long = "Open psql on a database, with everything after -- as its arguments. psql takes this program's place, and\n" +
		"its exit code. The password goes to it in PGPASSWORD, never in an argument."
	cmd.Example = "  holdfast db psql shop\n  holdfast db psql shop -- -c 'select now()'"
	return cmd
}

// refuseConnecting refuses to connect to a database whose server does not run: another program, such as another
// appliance of this machine, may have its port.
func refuseConnecting(db wire.Database) error {
	if db.Status != wire.DatabaseFailed && db.Status != wire.DatabaseUnavailable && db.Status != wire.DatabaseRestoring {
		return nil
	}
	why := ""
	if db.StatusReason != nil {
		why = ": " + *db.StatusReason
	}
	return failf(exitError, "%s is %s%s; psql connects when it is available", db.Name, db.Status, why)
}

// withoutTargets removes the variables that would send libpq to another
// database (PostgreSQL's documentation, 34.15), except those in kept.
func withoutTargets(environment []string, kept ...string) []string {
	targets := []string{
		"DATABASE_URL", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE",
		"PGSERVICEFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGTARGETSESSIONATTRS", "PGREQUIREAUTH",
	}
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(targets, name) && !slices.Contains(kept, name)
	})
}
