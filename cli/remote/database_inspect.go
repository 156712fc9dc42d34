package remote

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/server/api/wire"
)

func newDatabaseLocks(s *session) *cobra.Command {
	cmd := s.aboutDatabase("locks DATABASE", "Show which sessions wait for which others", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListLocks(t.ctx, db.ID)
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range found.Locks {
				rows = append(rows, []string{
					strings.Repeat("  ", x.Depth) + x.Session.ID, x.Session.User, text(x.Session.State), Ago(x.Session.StateSince), lockWanted(x), shortened(text(x.Session.Query)),
				})
			}
			return t.table(nil, found, "no session waits for another", []string{"SESSION", "USER", "STATE", "SINCE", "WAITS FOR", "STATEMENT"}, rows)
		})
	cmd.Long = "Show the sessions that wait for locks and those they wait for. Below each session are those that wait for it.\n`db session cancel` and `db session terminate` end what blocks others."
	return cmd
}

// lockWanted returns what a session waits for.
func lockWanted(x wire.LockedSession) string {
	wanted := strings.TrimSpace(text(x.Mode) + " " + text(x.Relation))
	if x.Relation == nil && x.Kind != nil {
		wanted += " of a " + *x.Kind
	}
	if x.Others > 0 {
		wanted += fmt.Sprintf(", and %d other processes", x.Others)
	}
	return wanted
}

func newDatabaseStatement(s *session) *cobra.Command {
	return Group("statement", "The statements of a database: what they cost, and their plans", newStatementList(s), newStatementExplain(s), newStatementReset(s))
}

func newStatementList(s *session) *cobra.Command {
	var order string
	cmd := s.aboutDatabase("list DATABASE", "Show the statements that took most", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListStatements(t.ctx, db.ID, wire.StatementOrder(strings.ReplaceAll(order, "-", "_")))
			if err != nil {
				return err
			}
			rows := [][]string{}
			for _, x := range found.Statements {
				hits := ""
				if x.HitRatio != nil {
					hits = fmt.Sprintf("%.1f%%", 100**x.HitRatio)
				}
				rows = append(rows, []string{
					x.ID, fmt.Sprint(x.Calls), fmt.Sprintf("%.0f ms", x.TotalMS), fmt.Sprintf("%.2f ms", x.MeanMS), fmt.Sprint(x.Rows), hits, shortened(x.Text),
				})
			}
			empty := "no statement was counted yet"
			if found.Enable != nil {
				empty = *found.Enable
			}
			return t.table(nil, found, empty, []string{"ID", "CALLS", "TOTAL", "MEAN", "ROWS", "HITS", "STATEMENT"}, rows)
		})
	cmd.Flags().StringVar(&order, "order", "total-time", "total-time, mean-time, calls or rows")
	return cmd
}

func newStatementExplain(s *session) *cobra.Command {
	var sql string
	cmd := s.aboutDatabase("explain DATABASE [STATEMENT]", "Show the plan of a statement, without executing it", cobra.RangeArgs(1, 2),
		func(t *task, db wire.Database, args []string) error {
			in := wire.ExplainStatement{Statement: orNil(sql)}
			if len(args) > 0 {
				in.StatementID = &args[0]
			}
			return shows(t, func(w io.Writer, x wire.StatementPlan) { fmt.Fprint(w, x.Plan) })(t.api.ExplainStatement(t.ctx, db.ID, in))
		})
	cmd.Long = "Show the plan of a statement: of one that `statement list` shows, by its id, or of --sql. It is not executed, so there are\nonly estimates; parameters ($1) may have any value."
	cmd.Example = "  holdfast db statement explain shop --sql 'select * from orders where id = $1'\n  holdfast db statement explain shop -- -5816372838273653645"
	cmd.Flags().StringVar(&sql, "sql", "", "the statement")
	return cmd
}

func newStatementReset(s *session) *cobra.Command {
	return s.aboutDatabase("reset DATABASE", "Forget what was counted of the statements", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			return shows(t, func(w io.Writer, x wire.ResetStatements) { fmt.Fprintf(w, "forgot %d statements\n", x.Forgotten) })(t.api.ResetStatements(t.ctx, db.ID))
		})
}

func newDatabaseSizes(s *session) *cobra.Command {
	var indexes bool
	var dbname string
	cmd := s.aboutDatabase("sizes DATABASE", "Show the sizes of tables and indexes", cobra.ExactArgs(1),
		func(t *task, db wire.Database, _ []string) error {
			found, err := t.api.ListRelations(t.ctx, db.ID, dbname)
			if err != nil {
				return err
			}
			if indexes {
				return t.table(nil, found, "there are no indexes", []string{"INDEX", "TABLE", "SIZE", "EMPTY, ABOUT", "SCANS", "REMARK"}, indexRows(found.Indexes))
			}
			rows := [][]string{}
			for _, x := range found.Tables {
				rows = append(rows, []string{
					x.Schema + "." + x.Name, size(x.TotalBytes), size(x.TableBytes), size(x.IndexBytes), size(x.TOASTBytes), sizeOr(x.BloatBytes), fmt.Sprint(x.DeadRows), Ago(x.LastVacuumAt),
				})
			}
			return t.table(nil, found, "there are no tables", []string{"TABLE", "TOTAL", "ROWS IN", "INDEXES", "TOAST", "EMPTY, ABOUT", "DEAD ROWS", "VACUUMED"}, rows)
		})
	cmd.Flags().BoolVar(&indexes, "indexes", false, "show the indexes, and which of them no query has used")
	s.dbnameFlag(cmd, &dbname)
	return cmd
}

func indexRows(indexes []wire.IndexSize) [][]string {
	rows := [][]string{}
	for _, x := range indexes {
		var remarks []string
		for _, remark := range []struct {
			applies bool
			text    string
		}{{x.Unused, "unused"}, {x.Unique, "unique"}, {!x.Valid, "not valid"}} {
			if remark.applies {
				remarks = append(remarks, remark.text)
			}
		}
		rows = append(rows, []string{x.Schema + "." + x.Name, x.Table, size(x.SizeBytes), sizeOr(x.BloatBytes), fmt.Sprint(x.Scans), strings.Join(remarks, ", ")})
	}
	return rows
}
