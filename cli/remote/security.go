package remote

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newSSL(s *session) *cobra.Command {
	var ca bool
	cmd := s.aboutDatabase("ssl DATABASE", "Show how a database's connections are encrypted", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, func(w io.Writer, ssl wire.SSL) {
				if ca {
					fmt.Fprint(w, ssl.CACertificate)
					return
				}
				sslDetails(w, ssl)
			})(t.api.GetDatabaseSSL(t.ctx, db.ID))
		})
	cmd.Example = "  holdfast db ssl shop\n  holdfast db ssl shop --ca > ca.crt"
	cmd.Flags().BoolVar(&ca, "ca", false, "print only the authority's certificate, for sslmode=verify-full")
	return cmd
}

func sslDetails(w io.Writer, ssl wire.SSL) {
	count := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	details(w,
		"encrypted", yesNo(ssl.Enabled), "enforced", yesNo(ssl.Enforced), "at least", ssl.MinProtocolVersion,
		"certificate", ssl.Certificate.Subject, "names", strings.Join(ssl.Certificate.SANs, ", "),
		"issuer", ssl.Certificate.Issuer, "valid until", formatTime(&ssl.Certificate.NotAfter),
		"SHA-256", ssl.Certificate.SHA256Fingerprint,
		"sessions with", count(ssl.Connections.SSL), "sessions without", count(ssl.Connections.NonSSL))
}

func newRLS(s *session) *cobra.Command {
	var dbname string
	show := s.aboutDatabase("show DATABASE", "Show the row-level security of every table", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			rls, err := t.api.GetDatabaseRLS(t.ctx, db.ID, dbname)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, table := range rls.Tables {
				rows = append(rows, rlsRow(table))
			}
			return t.table(nil, rls, "the database has no tables", rlsHeadings, rows)
		})
	s.dbnameFlag(show, &dbname)
	return Group("rls", "Row-level security", show,
		newSetRLS(s, "enable", "Turn row-level security of a table on", true),
		newSetRLS(s, "disable", "Turn row-level security of a table off", false))
}

var rlsHeadings = []string{"TABLE", "ENABLED", "FORCED", "POLICIES", "WARNING"}

func rlsRow(table wire.RLSTable) []string {
	return []string{
		table.Schema + "." + table.Table, yesNo(table.RLSEnabled), yesNo(table.RLSForced), fmt.Sprint(len(table.Policies)),
		strings.ReplaceAll(text(table.Warning), "_", " "),
	}
}

func newSetRLS(s *session, use, short string, enabled bool) *cobra.Command {
	in := wire.SetRLS{Enabled: enabled}
	var schema string
	var force bool
	cmd := s.aboutDatabase(use+" DATABASE TABLE", short, cobra.ExactArgs(2),
		func(t *task, db wire.Database, args []string) error {
			in.Table, in.Schema = args[0], orNil(schema)
			if t.cmd.Flags().Changed("force") {
				in.Force = &force
			}
			return shows(t, func(w io.Writer, table wire.RLSTable) { columns(w, [][]string{rlsHeadings, rlsRow(table)}) })(t.api.SetDatabaseRLS(t.ctx, db.ID, in))
		})
	cmd.Flags().StringVar(&schema, "schema", "", "the table's schema (default: public)")
	cmd.Flags().BoolVar(&force, "force", false, "let it hold for the table's owner too")
	return cmd
}
