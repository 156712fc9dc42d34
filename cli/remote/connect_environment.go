package remote

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

// environment is a connection as environment variables. An empty TLS variable
// is not set.
type environment struct {
	wire.Environment
	SSLRootCert string `json:"PGSSLROOTCERT,omitempty"`
}

type variable struct{ name, value string }

func (e environment) variables() []variable {
	return []variable{
		{"DATABASE_URL", e.DatabaseURL},
		{"PGHOST", e.Host},
		{"PGPORT", e.Port},
		{"PGDATABASE", e.Database},
		{"PGUSER", e.User},
		{"PGPASSWORD", e.Password},
		{"PGSSLMODE", e.SSLMode},
		{"PGSSLROOTCERT", e.SSLRootCert},
	}
}

// print writes the variables. For a shell it also unsets the empty ones, which
// may be left from another database.
func (e environment) print(w io.Writer, format string) {
	for _, v := range e.variables() {
		switch {
		case v.value == "" && format == formatShell:
			fmt.Fprintf(w, "unset %s\n", v.name)
		case v.value == "":
		case format == formatShell:
			fmt.Fprintf(w, "export %s=%s\n", v.name, shellQuote(v.value))
		default:
			fmt.Fprintf(w, "%s=%s\n", v.name, shellQuote(v.value))
		}
	}
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// verifyFlags say whether programs should verify the server.
type verifyFlags struct {
	verify    bool
	authority authorityFile
}

func (v *verifyFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&v.verify, "verify", false, "have programs verify the server")
	v.authority.register(cmd)
}

func (v *verifyFlags) environment(t *task, database string) (environment, error) {
	if !v.verify {
		if v.authority.path != "" {
			return environment{}, usagef("ca-file: needs --verify, whose variables name the file")
		}
		c, err := t.databaseConnection(database, client.ConnectionOptions{})
		return environment{Environment: c.Environment}, err
	}
	c, err := v.authority.connection(t, database)
	e := environment{Environment: c.Environment, SSLRootCert: v.authority.path}
	e.DatabaseURL, e.SSLMode = c.Drivers.Libpq, "verify-full"
	return e, err
}
