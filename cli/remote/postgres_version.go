package remote

import (
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newVersions(s *session) *cobra.Command {
	return s.command("versions", "Show the versions of PostgreSQL that databases can have", cobra.NoArgs, func(t *task, _ []string) error {
		found, err := t.api.ListPostgresVersions(t.ctx)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, v := range found.Versions {
			rows = append(rows, versionRow(v))
		}
		return t.table(nil, found, "there is no PostgreSQL", []string{"MAJOR", "VERSION", "FROM", "REMARK"}, rows)
	})
}

func versionRow(v wire.PostgresVersion) []string {
	var remarks []string
	if v.Default {
		remarks = append(remarks, "for new databases")
	}
	from := v.Origin
	if !v.Installed {
		from = "fetched when needed"
	}
	if len(v.Lacks) > 0 {
		remarks = append(remarks, "lacks "+strings.Join(v.Lacks, ", "))
	}
	return []string{v.Major, v.Version, from, strings.Join(remarks, "; ")}
}
