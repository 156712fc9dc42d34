package web

import (
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// logData is what database_log.html shows.
type logData struct {
	databaseData
	Lines         []databases.LogLine
	Level, Search string
}

// Levels returns the levels to choose from.
func (logData) Levels() []string { return databases.LogLevels() }

// shownLogLines is how many lines of a log a page shows.
const shownLogLines = 400

func (req *request) databaseLog(db databaseData, _ error) (answer, error) {
	query := req.r.URL.Query()
	level, search := strings.ToUpper(query.Get("level")), query.Get("search")
	filter := databases.LogFilter{Level: level, Search: search, Limit: shownLogLines}
	part, err := req.engine.Databases.ServerLog(req.call, db.ID, filter)
	a := answer{page: "database_log.html", data: logData{db, part.Lines, level, search}, live: err == nil}
	if filter.After = part.Cursor; !db.busy() {
		a.wait = func(longest time.Duration) bool {
			next, err := req.engine.Databases.ServerLogNext(req.r.Context(), req.call, db.ID, filter, longest)
			return err != nil || len(next.Lines) > 0
		}
	}
	return a, err
}

func (req *request) databaseRestart() (answer, error) {
	_, err := req.engine.Databases.Restart(req.r.Context(), req.call, req.id())
	return done(req.databasePath(""), "restarted"), err
}

// operationCancel cancels what is being done to a database.
func (req *request) operationCancel() (answer, error) {
	shown := func(op *model.DatabaseOperation) bool { return op.ID == req.form("operation") }
	return done(req.databasePath(""), "operation_cancelled"), req.cancelRunning(req.id(), shown)
}

// cancelRunning cancels the operation that a database's record names, if it is the one that the page has shown.
func (req *request) cancelRunning(database string, shown func(*model.DatabaseOperation) bool) error {
	db, err := req.engine.Databases.Get(req.call, database)
	if err != nil {
		return err
	}
	if db.RunningOp == nil {
		return model.Errorf(model.CodeConflict, "nothing is being done to %s any more", db.Name)
	}
	if !shown(db.RunningOp) {
		return model.Errorf(model.CodeConflict, "what was to be cancelled has ended, and something else is being done to %s now", db.Name)
	}
	_, err = req.engine.Databases.OperationCancel(req.r.Context(), req.call, db.RunningOp.ID)
	return err
}

func (req *request) databasePassword() (answer, error) {
	rotation, err := req.engine.Databases.RotatePassword(req.r.Context(), req.call, req.id(), req.checked("terminate_sessions"))
	if err != nil {
		return answer{}, err
	}
	db, err := req.withDatabase("connect")
	data := connectData{
		databaseData: db, Connection: rotation.Connection,
		News: "The password is new; the old one does not work any more. " + model.Count(rotation.SessionsTerminated, "session") + " ended.",
	}
	// The password is shown even if the rest of the page cannot be: it is shown once.
	if err != nil {
		req.opts.Log.Error("read a database for the page of its new password", "error", err)
	}
	return answer{page: "database_connect.html", title: db.Name, data: data}, nil
}

func (req *request) databaseDelete() (answer, error) {
	err := req.confirmDatabase()
	if err == nil {
		_, err = req.engine.Databases.Delete(req.r.Context(), req.call, req.id())
	}
	return done("/", "database_deleted"), err
}

// confirmDatabase checks that the user typed the name of the database that the
// request destroys or replaces.
func (req *request) confirmDatabase() error {
	db, err := req.engine.Databases.Get(req.call, req.id())
	if err != nil {
		return err
	}
	return req.confirm(db.Name)
}

func (req *request) confirm(name string) error {
	if asTyped(req.form("confirm")) != asTyped(name) {
		return model.Invalid("confirm", "type %s to show that you mean it", name)
	}
	return nil
}

// asTyped normalizes a name to what a user can see and type: no surrounding
// space, single spaces within, and composed accents.
func asTyped(name string) string { return strings.Join(strings.Fields(norm.NFC.String(name)), " ") }
