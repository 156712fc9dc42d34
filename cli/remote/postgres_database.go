package remote

import (
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newPostgresDatabases(s *session) *cobra.Command {
	cmd := s.aboutDatabase("databases DATABASE", "Show the databases of PostgreSQL in a database's server, with their sizes", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListPostgresDatabases(t.ctx, db.ID)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, d := range found.Databases {
				rows = append(rows, []string{d.Name, size(d.SizeBytes), d.Encoding, databaseRemarks(d)})
			}
			return t.table(nil, found, "there are none", []string{"DATABASE", "SIZE", "ENCODING", "REMARK"}, rows)
		})
	cmd.Long = "Show the databases of PostgreSQL in a database's server: the main one, and those that roles with access create have\n" +
		"made beside it. `db sizes`, `db rls show` and `backup export` take one of their names as --dbname."
	return cmd
}

func databaseRemarks(d wire.PostgresDatabase) string {
	var remarks []string
	if d.Main {
		remarks = append(remarks, "the main one")
	}
	if !d.AllowConnections {
		remarks = append(remarks, "closed by its owner")
	}
	return strings.Join(remarks, ", ")
}

// dbnameFlag lets a command, whose first argument is a database, name one beside the main one.
func (s *session) dbnameFlag(cmd *cobra.Command, dbname *string) {
	cmd.Flags().StringVar(dbname, "dbname", "", "a database beside the main one, of those that db databases shows")
	flagWords(cmd, "dbname", s.complete(besideNames))
}

// besideNames yields the databases of PostgreSQL in the server of the database that the first argument names.
func besideNames(t *task, args []string, _ string) iter.Seq2[named, error] {
	if len(args) == 0 {
		return func(func(named, error) bool) {}
	}
	return t.namesIn(args[0], func(db string) ([]named, error) {
		found, err := t.api.ListPostgresDatabases(t.ctx, db)
		var names []named
		for _, d := range found.Databases {
			if !d.Main {
				names = append(names, named{name: d.Name, note: size(d.SizeBytes)})
			}
		}
		return names, err
	})
}
