package web

import (
	"net/netip"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
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

// path is where the page tab of the database lies.
func (v *visit) databasePath(tab string) string {
	return strings.TrimSuffix("/databases/"+v.r.PathValue("id")+"/"+tab, "/")
}

// databaseOverview is what database.html shows.
type databaseOverview struct {
	databaseData
	Month  bool
	Charts []chart
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
	data.Charts = charts(samples, series, v.engine.Now())
	busy := db.RunningOp != nil || db.Status == model.DatabaseUnavailable
	return answer{page: "database.html", title: db.title(), data: data, live: busy}, err
}

// databaseForm is what database_new.html shows.
type databaseForm struct {
	Projects            []model.Project
	Project, Name, User string
}

func (v *visit) databaseNew() (answer, error) { return v.databaseFormPage(databaseForm{}, nil) }

func (v *visit) databaseFormPage(form databaseForm, cause error) (answer, error) {
	projects, err := v.allProjects()
	if cause != nil {
		err = cause
	}
	form.Projects = projects
	return answer{page: "database_new.html", title: "New database", data: form}, err
}

func (v *visit) databaseCreate() (answer, error) {
	form := databaseForm{Project: v.form("project"), Name: v.form("name"), User: v.form("db_user")}
	db, connection, err := v.engine.DatabaseCreate(v.r.Context(), v.call, engine.NewDatabase{
		Project: form.Project, Name: form.Name, User: form.User,
	})
	if err != nil {
		return v.databaseFormPage(form, err)
	}
	data := connectData{databaseData: databaseData{db, "connect"}, Connection: connection, News: "The database is ready."}
	return answer{page: "database_connect.html", title: db.Name, data: data}, nil
}

// connectData is what database_connect.html shows.
type connectData struct {
	databaseData
	Connection engine.Connection
	News       string // what made the connection what it is
}

func (d connectData) Password() string { return d.Connection.Password.Reveal() }

func (v *visit) databaseConnect() (answer, error) {
	db, err := v.withDatabase("connect")
	if err != nil {
		return answer{}, err
	}
	connection, err := v.engine.DatabaseConnection(v.call, db.ID)
	return answer{page: "database_connect.html", title: db.title(), data: connectData{databaseData: db, Connection: connection}}, err
}

// databaseAuthority sends the certificate by which clients know the server.
func (v *visit) databaseAuthority() (answer, error) {
	ssl, err := v.engine.SSLGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	v.w.Header().Set("Content-Type", "application/x-pem-file")
	v.w.Header().Set("Content-Disposition", `attachment; filename="holdfast-ca.crt"`)
	_, _ = v.w.Write([]byte(ssl.CACertificate))
	return answer{}, nil
}

// accessData is what database_access.html shows.
type accessData struct {
	databaseData
	Entries string // one a line
	Applied engine.Allowlist
	// YourNetwork is the address the person comes from.
	YourAddress string
	SSL         engine.SSL
	MinTLS      string
}

func (v *visit) databaseAccess() (answer, error) { return v.accessPage(nil, nil) }

func (v *visit) accessPage(typed []string, cause error) (answer, error) {
	db, err := v.withDatabase("access")
	if err != nil {
		return answer{}, err
	}
	list, err := v.engine.AllowlistGet(v.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	ssl, err := v.engine.SSLGet(v.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	if cause == nil {
		typed = formatNetworks(list.Entries)
	}
	data := accessData{
		databaseData: db, Entries: strings.Join(typed, "\n"), Applied: list, YourAddress: v.call.IP,
		SSL: ssl, MinTLS: engine.MinTLSVersion,
	}
	return answer{page: "database_access.html", title: db.title(), data: data}, cause
}

func formatNetworks(prefixes []netip.Prefix) []string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = model.FormatNetwork(p)
	}
	return texts
}

func (v *visit) allowlistSet() (answer, error) {
	entries := strings.FieldsFunc(v.form("entries"), func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
	if _, err := v.engine.AllowlistSet(v.r.Context(), v.call, v.r.PathValue("id"), entries); err != nil {
		return v.accessPage(entries, err)
	}
	return done(v.databasePath("access"), "allowlist"), nil
}

// tablesData is what database_tables.html shows.
type tablesData struct {
	databaseData
	Tables []postgres.Table
}

func (v *visit) tables() (answer, error) { return v.tablesPage(nil) }

func (v *visit) tablesPage(cause error) (answer, error) {
	db, err := v.withDatabase("tables")
	if err != nil {
		return answer{}, err
	}
	tables, err := v.engine.RLSGet(v.r.Context(), v.call, db.ID)
	if cause != nil {
		err = cause
	}
	return answer{page: "database_tables.html", title: db.title(), data: tablesData{db, tables}}, err
}

func (v *visit) rlsSet() (answer, error) {
	change := engine.RLSChange{Schema: v.form("schema"), Table: v.form("table"), Enabled: v.form("enabled") == "true"}
	if _, err := v.engine.RLSSet(v.r.Context(), v.call, v.r.PathValue("id"), change); err != nil {
		return v.tablesPage(err)
	}
	return done(v.databasePath("tables"), "rls"), nil
}

// logData is what database_log.html shows.
type logData struct {
	databaseData
	Lines []string
}

func (v *visit) databaseLog() (answer, error) {
	db, err := v.withDatabase("log")
	if err != nil {
		return answer{}, err
	}
	lines, err := v.engine.DatabaseLog(v.call, db.ID)
	return answer{page: "database_log.html", title: db.title(), data: logData{db, lines}}, err
}

func (v *visit) databaseSettings() (answer, error) { return v.databaseSettingsPage(nil) }

func (v *visit) databaseSettingsPage(cause error) (answer, error) {
	db, err := v.withDatabase("settings")
	if err != nil {
		return answer{}, err
	}
	return answer{page: "database_settings.html", title: db.title(), data: db}, cause
}

func (v *visit) databaseRestart() (answer, error) {
	if _, err := v.engine.DatabaseRestart(v.r.Context(), v.call, v.r.PathValue("id")); err != nil {
		return v.databaseSettingsPage(err)
	}
	return done(v.databasePath(""), "restarted"), nil
}

func (v *visit) databasePassword() (answer, error) {
	rotation, err := v.engine.DatabaseRotatePassword(v.r.Context(), v.call, v.r.PathValue("id"), v.checked("terminate_sessions"))
	if err != nil {
		return v.databaseSettingsPage(err)
	}
	db, err := v.withDatabase("connect")
	data := connectData{
		databaseData: db, Connection: rotation.Connection,
		News: "The password is new; the old one does not work any more. " + count(rotation.SessionsTerminated, "session") + " ended.",
	}
	return answer{page: "database_connect.html", title: db.title(), data: data}, err
}

func (v *visit) databaseDelete() (answer, error) {
	if err := v.confirmDatabase(); err != nil {
		return v.databaseSettingsPage(err)
	}
	if _, err := v.engine.DatabaseDelete(v.r.Context(), v.call, v.r.PathValue("id")); err != nil {
		return v.databaseSettingsPage(err)
	}
	return done("/", "database_deleted"), nil
}

// confirmDatabase checks that the person typed the name of the database that
// is about to be destroyed or replaced.
func (v *visit) confirmDatabase() error {
	db, err := v.engine.DatabaseGet(v.call, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.confirm(db.Name)
}

func (v *visit) confirm(name string) error {
	if strings.TrimSpace(v.form("confirm")) != name {
		return model.Invalid("confirm", "type %s to show that you mean it", name)
	}
	return nil
}
