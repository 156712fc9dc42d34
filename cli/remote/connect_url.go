package remote

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cli/client"
	"holdfast/server/api/wire"
)

func newDatabaseURL(s *session) *cobra.Command {
	var driver string
	var authority authorityFile
	cmd := s.aboutDatabase("url DATABASE", "Print a database's connection URL, password included", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			if driver == "" {
				if authority.path != "" {
					return usagef("ca-file: needs --driver, whose string names the file")
				}
				return shows(t, func(w io.Writer, c wire.Connection) { fmt.Fprintln(w, c.ConnectionURL) })(t.databaseConnection(db.ID, client.ConnectionOptions{}))
			}
			return authority.showDriver(t, db.ID, driver)
		})
	cmd.Long = "Print a database's connection URL, password included. --driver prints the string for one driver instead, which\n" +
		"verifies the server. It names a file with the certificate of the appliance's authority, which this command writes."
	cmd.Example = "  psql \"$(holdfast db url shop)\"\n  holdfast db url shop --driver jdbc --ca-file /etc/app/holdfast-ca.crt"
	cmd.Flags().StringVar(&driver, "driver", "", "print the string for a driver, which verifies the server: "+strings.Join(driverNames(), ", "))
	authority.register(cmd)
	flagWords(cmd, "driver", cobra.FixedCompletions(driverNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *authorityFile) showDriver(t *task, database, driver string) error {
	if !slices.Contains(driverNames(), driver) {
		return usagef("driver: %q is not one of %s", driver, strings.Join(driverNames(), ", "))
	}
	return shows(t, func(w io.Writer, c wire.Connection) { fmt.Fprintln(w, driverString(c.Drivers, driver)) })(a.connection(t, database))
}

// databaseConnection requests the connection, and remarks if the password is
// unknown.
func (t *task) databaseConnection(database string, o client.ConnectionOptions) (wire.Connection, error) {
	c, err := t.api.GetDatabaseConnection(t.ctx, database, o)
	if err == nil && c.Message != nil {
		t.note("%s (`holdfast db rotate-password`)", *c.Message)
	}
	return c, err
}

func driverNames() []string {
	var names []string
	for _, d := range driverStrings(wire.Drivers{}) {
		names = append(names, d.name)
	}
	return names
}

func driverString(drivers wire.Drivers, name string) string {
	all := driverStrings(drivers)
	return all[slices.IndexFunc(all, func(v variable) bool { return v.name == name })].value
}

// driverStrings names each string as the API does.
func driverStrings(d wire.Drivers) []variable {
	return []variable{
		{"libpq", d.Libpq},
		{"node_postgres", d.NodePostgres},
		{"jdbc", d.JDBC},
		{"npgsql", d.Npgsql},
		{"pgx", d.Pgx},
		{"asyncpg", d.Asyncpg},
		{"sqlalchemy", d.SQLAlchemy},
	}
}
