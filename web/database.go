package web

import (
	"cmp"
	"strings"

	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// databaseData is the data of every page about a database.
type databaseData struct {
	databases.View
	Tab string
}

// withDatabase returns the database in the path, for one of its pages.
func (req *request) withDatabase(tab string) (databaseData, error) {
	db, err := req.engine.Databases.Get(req.call, req.id())
	return databaseData{db, tab}, err
}

// aboutDatabase returns a page about the database in the path.
func aboutDatabase(tab string, page func(*request, databaseData, error) (answer, error)) page {
	return func(req *request, cause error) (answer, error) {
		db, err := req.withDatabase(tab)
		if err != nil {
			return answer{}, err
		}
		a, err := page(req, db, cause)
		a.title, a.live = db.Name, a.live || db.busy()
		return a, err
	}
}

// busy reports whether an operation on the database is running: its pages then
// show the progress and offer fewer actions.
func (d databaseData) busy() bool { return d.RunningOp != nil }

// letsSleep reports whether a page leaves out what only the server knows, because the
// database sleeps: looking at pages does not wake it.
func (req *request) letsSleep(db databaseData) bool {
	return db.Asleep && !req.r.URL.Query().Has("wake")
}

// databasePath returns the path of the database's page tab.
func (req *request) databasePath(tab string) string {
	return strings.TrimSuffix("/databases/"+req.id()+"/"+tab, "/")
}

// databaseOverview is what database.html shows.
type databaseOverview struct {
	databaseData
	Month  bool
	Charts []chart
	Advice adviceBrief
}

func (req *request) database(db databaseData, _ error) (answer, error) {
	data := databaseOverview{databaseData: db, Month: req.r.URL.Query().Get("range") == "month"}
	series := model.SeriesDay()
	if data.Month {
		series = model.SeriesMonth()
	}
	samples, err := req.engine.Databases.Metrics(req.call, db.ID, series)
	if err != nil {
		return answer{}, err
	}
	data.Charts = charts(samples, series, req.engine.Now())
	all, err := req.engine.Insight.Recommendations(req.call)
	data.Advice = newAdviceBrief(adviceOn(all, db.ID), "/databases/"+db.ID, "/advice?database="+db.ID)
	return answer{page: "database.html", data: data, live: db.Status == model.DatabaseUnavailable}, err
}

// databaseForm is what database_new.html shows.
type databaseForm struct {
	Projects                     []model.Project
	Versions                     []databases.Version
	Project, Name, User, Version string
}

func (req *request) databaseNew(cause error) (answer, error) {
	if err := req.opens(model.ActionDatabaseCreate); err != nil {
		return answer{}, err
	}
	form := req.typedDatabase()
	var err error
	if form.Projects, err = req.engine.Access.Projects(req.call); err == nil {
		form.Versions, err = req.engine.Databases.Versions(req.r.Context(), req.call)
	}
	return answer{page: "database_new.html", title: "New database", data: form}, cmp.Or(cause, err)
}

func (req *request) typedDatabase() databaseForm {
	return databaseForm{Project: req.form("project"), Name: req.form("name"), User: req.form("db_user"), Version: req.form("version")}
}

func (req *request) databaseCreate() (answer, error) {
	form := req.typedDatabase()
	db, connection, err := req.engine.Databases.Create(req.r.Context(), req.call, databases.NewDatabase{
		Project: form.Project, Name: form.Name, User: form.User, Version: form.Version,
	})
	if err != nil {
		return answer{}, err
	}
	data := connectData{databaseData: databaseData{db, "connect"}, Connection: connection, News: "The database is ready."}
	return answer{page: "database_connect.html", title: db.Name, data: data}, nil
}
