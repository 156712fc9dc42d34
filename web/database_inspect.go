package web

import (
	"cmp"
	"fmt"
	"strings"

	"holdfast/engine/insight"
	"holdfast/engine/postgres"
)

// statementsData is what database_statements.html shows.
type statementsData struct {
	databaseData
	insight.Statements
	Rows []statementRow
	// Statement and Plan are of a statement that was explained, "" if none was.
	Statement, Plan string
	SQL             string // as it was typed
}

type statementRow struct {
	insight.Statement
	FromMemory string // the part of its pages that were in memory, "" if it read none
}

func (req *request) statements(db databaseData, cause error) (answer, error) {
	found, err := req.engine.Insight.Statements(req.r.Context(), req.call, db.ID, insight.StatementOrder(req.r.URL.Query().Get("order")))
	data := statementsData{databaseData: db, Statements: found, SQL: req.form("statement")}
	for _, x := range found.Statements {
		row := statementRow{Statement: x}
		if ratio, known := x.HitRatio(); known {
			row.FromMemory = fmt.Sprintf("%.1f%%", 100*ratio)
		}
		data.Rows = append(data.Rows, row)
	}
	return answer{page: "database_statements.html", data: data}, cmp.Or(cause, err)
}

func (req *request) statementsReset() (answer, error) {
	_, err := req.engine.Insight.StatementsReset(req.r.Context(), req.call, req.id())
	return done(req.databasePath("statements"), "statements_reset"), err
}

// statementExplain shows the plan on the page of the statements.
func (req *request) statementExplain() (answer, error) {
	in := insight.Explained{Statement: req.form("statement"), ID: req.form("statement_id")}
	statement, plan, err := req.engine.Insight.Explain(req.r.Context(), req.call, req.id(), in)
	if err != nil {
		return answer{}, err
	}
	return aboutDatabase("statements", func(req *request, db databaseData, _ error) (answer, error) {
		a, err := req.statements(db, nil)
		if data, ok := a.data.(statementsData); ok {
			data.Statement, data.Plan = statement, plan
			a.data = data
		}
		return a, err
	})(req, nil)
}

// locksData is what database_locks.html shows.
type locksData struct {
	databaseData
	Locks []lockedRow
}

type lockedRow struct {
	postgres.LockedSession
	Branch string // its place in the tree
}

func (req *request) locks(db databaseData, cause error) (answer, error) {
	locks, err := req.engine.Databases.Locks(req.r.Context(), req.call, db.ID)
	data := locksData{databaseData: db}
	for _, x := range locks {
		row := lockedRow{LockedSession: x}
		if x.Depth > 0 {
			row.Branch = strings.Repeat("\u00a0\u00a0\u00a0", x.Depth-1) + "└ "
		}
		data.Locks = append(data.Locks, row)
	}
	return answer{page: "database_locks.html", data: data}, cmp.Or(cause, err)
}

// sizesData is what database_sizes.html shows.
type sizesData struct {
	databaseData
	DBName  string // the database beside the main one that they are of, "" for the main one
	Tables  []insight.TableSize
	Indexes []insight.IndexSize
}

func (req *request) sizes(db databaseData, cause error) (answer, error) {
	data := sizesData{databaseData: db, DBName: req.r.URL.Query().Get("dbname")}
	if req.letsSleep(db) {
		return answer{page: "database_sizes.html", data: data}, cause
	}
	var err error
	data.Asleep = false
	data.Tables, data.Indexes, err = req.engine.Insight.Relations(req.r.Context(), req.call, db.ID, data.DBName)
	return answer{page: "database_sizes.html", data: data}, cmp.Or(cause, err)
}
