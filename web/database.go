package web

import (
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
)

// databaseData is what every page about a database shows.
type databaseData struct {
	engine.DatabaseView
	Tab string
}

// withDatabase returns the database of the path, for a page of its.
func (v *visit) withDatabase(tab string) (databaseData, error) {
	db, err := v.engine.DatabaseGet(v.call, v.r.PathValue("id"))
	return databaseData{db, tab}, err
}

func (d databaseData) title() string { return d.Name }

// busy reports whether something is under way on the database: its pages say how
// far it is, and offer less meanwhile.
func (d databaseData) busy() bool { return d.RunningOp != nil }

// path is where the page tab of the database lies.
func (v *visit) databasePath(tab string) string {
	return strings.TrimSuffix("/databases/"+v.r.PathValue("id")+"/"+tab, "/")
}

// databaseOverview is what database.html shows.
type databaseOverview struct {
	databaseData
	Month  bool
	Charts []chart
	Advice adviceBrief
}

func (v *visit) database() (answer, error) {
	db, err := v.withDatabase("")
	if err != nil {
		return answer{}, err
	}
	data := databaseOverview{databaseData: db, Month: v.r.URL.Query().Get("range") == "month"}
	series := model.SeriesDay()
	if data.Month {
		series = model.SeriesMonth()
	}
	samples, err := v.engine.Metrics(v.call, db.ID, series)
	if err != nil {
		return answer{}, err
	}
	data.Charts = charts(samples, series, v.engine.Now())
	all, err := v.engine.Recommendations(v.call)
	data.Advice = newAdviceBrief(adviceOn(all, db.ID), "/databases/"+db.ID, "/advice?database="+db.ID)
	live := db.busy() || db.Status == model.DatabaseUnavailable
	return answer{page: "database.html", title: db.title(), data: data, live: live}, err
}

// databaseForm is what database_new.html shows.
type databaseForm struct {
	Projects            []model.Project
	Project, Name, User string
}

func (v *visit) databaseNew() (answer, error) {
	if err := v.opens(model.ActionDatabaseCreate); err != nil {
		return answer{}, err
	}
	return v.databaseFormPage(databaseForm{}, nil)
}

func (v *visit) databaseFormPage(form databaseForm, cause error) (answer, error) {
	projects, err := v.engine.Projects(v.call)
	if cause != nil {
		err = cause
	}
	form.Projects = projects
	return answer{page: "database_new.html", title: "New database", data: form}, err
}

func (v *visit) typedDatabase() databaseForm {
	return databaseForm{Project: v.form("project"), Name: v.form("name"), User: v.form("db_user")}
}

func (v *visit) databaseAgain(cause error) (answer, error) {
	return v.databaseFormPage(v.typedDatabase(), cause)
}

func (v *visit) databaseCreate() (answer, error) {
	form := v.typedDatabase()
	db, connection, err := v.engine.DatabaseCreate(v.r.Context(), v.call, engine.NewDatabase{
		Project: form.Project, Name: form.Name, User: form.User,
	})
	if err != nil {
		return v.databaseFormPage(form, err)
	}
	data := connectData{databaseData: databaseData{db, "connect"}, Connection: connection, News: "The database is ready."}
	return answer{page: "database_connect.html", title: db.Name, data: data}, nil
}
