package web

import (
	"cmp"
	"net/url"
	"strings"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// accessData is what database_access.html shows.
type accessData struct {
	databaseData
	Entries string // one a line
	Applied databases.Allowlist
	// YourAddress is the address of the user.
	YourAddress string
	SSL         databases.SSL
	MinTLS      string
}

func (req *request) databaseAccess(db databaseData, cause error) (answer, error) {
	list, err := req.engine.Databases.AllowlistGet(req.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	ssl, err := req.engine.Databases.SSLGet(req.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	entries := req.typedEntries()
	if !req.r.PostForm.Has("entries") {
		entries = model.FormatNetworks(list.Entries)
	}
	data := accessData{
		databaseData: db, Entries: strings.Join(entries, "\n"), Applied: list, YourAddress: req.call.IP,
		SSL: ssl, MinTLS: databases.MinTLSVersion,
	}
	return answer{page: "database_access.html", data: data}, cause
}

func (req *request) typedEntries() []string {
	return strings.FieldsFunc(req.form("entries"), func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
}

func (req *request) allowlistSet() (answer, error) {
	_, err := req.engine.Databases.AllowlistSet(req.r.Context(), req.call, req.id(), req.typedEntries())
	return done(req.databasePath("access"), "allowlist"), err
}

// tablesData is what database_tables.html shows.
type tablesData struct {
	databaseData
	DBName string // as in sizesData
	listPage[postgres.Table]
}

// tablesOnPage is the number of tables on a page.
const tablesOnPage = 100

func (req *request) tables(db databaseData, cause error) (answer, error) {
	dbname := req.r.URL.Query().Get("dbname")
	if req.letsSleep(db) {
		return answer{page: "database_tables.html", data: tablesData{databaseData: db, DBName: dbname}}, cause
	}
	tables, err := req.engine.Databases.RLSGet(req.r.Context(), req.call, db.ID, dbname)
	data := tablesData{db, dbname, listPageOf(tables, req.r.URL.Query(), tablesOnPage)}
	return answer{page: "database_tables.html", data: data}, cmp.Or(cause, err)
}

func (req *request) rlsSet() (answer, error) {
	query := req.r.URL.Query() // a form field would normalize line breaks in a name
	change := databases.RLSChange{Schema: query.Get("schema"), Table: query.Get("table"), Enabled: req.form("enabled") == "true"}
	_, err := req.engine.Databases.RLSSet(req.r.Context(), req.call, req.id(), change)
	a := done(req.databasePath("tables"), "rls")
	if page := query.Get("page"); page != "" { // return to the same page
		a.redirect += "&page=" + url.QueryEscape(page)
	}
	return a, err
}
