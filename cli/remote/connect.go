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
)

func newDatabaseURL(s *session) *cobra.Command {
	return s.aboutDatabase("url DATABASE", "Print a database's connection URL, password included", cobra.ExactArgs(1),
		func(t *task, db client.Database, _ []string) error {
			c, err := t.api.GetDatabaseConnection(t.ctx, db.ID)
			if err != nil {
				return err
			}
			return t.show(c, func(w io.Writer) { fmt.Fprintln(w, c.ConnectionURL) })
		})
}

// The forms in which `db env` prints.
const (
	formatShell  = "shell"
	formatDotenv = "dotenv"
)

func newDatabaseEnv(s *session) *cobra.Command {
	format := formatShell
	cmd := s.aboutDatabase("env DATABASE", "Print a database's connection as environment variables, password included", cobra.ExactArgs(1),
		func(t *task, db client.Database, _ []string) error {
			if format != formatShell && format != formatDotenv {
				return usagef("format: %q is neither %s nor %s", format, formatShell, formatDotenv)
			}
			c, err := t.api.GetDatabaseConnection(t.ctx, db.ID)
			if err != nil {
				return err
			}
			return t.show(c.Environment, func(w io.Writer) {
				for _, variable := range variables(c.Environment) {
					name, value, _ := strings.Cut(variable, "=")
					if format == formatShell {
						name = "export " + name
					}
					fmt.Fprintf(w, "%s=%s\n", name, shellQuote(value))
				}
			})
		})
	cmd.Example = "  eval \"$(holdfast db env shop)\"\n  holdfast db env shop --format dotenv > .env"
	cmd.Flags().StringVar(&format, "format", format, "shell (export NAME='value') or dotenv (NAME='value')")
	flagWords(cmd, "format", cobra.FixedCompletions([]cobra.Completion{formatShell, formatDotenv}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Environ is the environment of a program that is to use a database: base,
// with the variables that libpq reads set to the database and to no other.
func Environ(base []string, e client.Environment) []string {
	return append(withoutTargets(slices.Clone(base)), variables(e)...)
}

func variables(e client.Environment) []string {
	return []string{
		"DATABASE_URL=" + e.DatabaseURL, "PGHOST=" + e.Host, "PGPORT=" + e.Port, "PGDATABASE=" + e.Database,
		"PGUSER=" + e.User, "PGPASSWORD=" + e.Password, "PGSSLMODE=" + e.SSLMode,
	}
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func newDatabasePsql(s *session) *cobra.Command {
	cmd := s.aboutDatabase("psql DATABASE [-- ARGUMENT…]", "Open psql on a database", cobra.MinimumNArgs(1),
		func(t *task, db client.Database, args []string) error {
			program, err := exec.LookPath("psql")
			if err != nil {
				return failf(exitError, "there is no psql in PATH; install PostgreSQL's client programs (Debian: postgresql-client)")
			}
			c, err := t.api.GetDatabaseConnection(t.ctx, db.ID)
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

// withoutTargets takes away the variables that would send libpq somewhere
// else (PostgreSQL's documentation, 34.15).
func withoutTargets(environment []string) []string {
	targets := []string{
		"DATABASE_URL", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSERVICE",
		"PGSERVICEFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGTARGETSESSIONATTRS", "PGREQUIREAUTH",
	}
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(targets, name)
	})
}
