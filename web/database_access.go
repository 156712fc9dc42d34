package web

import (
	"net/netip"
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
	// YourAddress is the address the person comes from.
	YourAddress string
	SSL         databases.SSL
	MinTLS      string
}

func (req *request) databaseAccess() (answer, error) { return req.accessPage(nil, nil) }

func (req *request) accessPage(typed []string, cause error) (answer, error) {
	db, err := req.withDatabase("access")
	if err != nil {
		return answer{}, err
	}
	list, err := req.engine.Databases.AllowlistGet(req.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	ssl, err := req.engine.Databases.SSLGet(req.call, db.ID)
	if err != nil {
		return answer{}, err
	}
	if cause == nil {
		typed = formatNetworks(list.Entries)
	}
	data := accessData{
		databaseData: db, Entries: strings.Join(typed, "\n"), Applied: list, YourAddress: req.call.IP,
		SSL: ssl, MinTLS: databases.MinTLSVersion,
	}
	return answer{page: "database_access.html", title: db.title(), data: data, live: db.busy()}, cause
}

func formatNetworks(prefixes []netip.Prefix) []string {
	texts := make([]string, len(prefixes))
	for i, p := range prefixes {
		texts[i] = model.FormatNetwork(p)
	}
	return texts
}

func (req *request) allowlistSet() (answer, error) {
	entries := strings.FieldsFunc(req.form("entries"), func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
	if _, err := req.engine.Databases.AllowlistSet(req.r.Context(), req.call, req.r.PathValue("id"), entries); err != nil {
		return req.accessPage(entries, err)
	}
	return done(req.databasePath("access"), "allowlist"), nil
}

// tablesData is what database_tables.html shows.
type tablesData struct {
	databaseData
	listPage[postgres.Table]
}

// tablesOnPage is how many tables a page shows.
const tablesOnPage = 100

func (req *request) tables() (answer, error) { return req.tablesPage(nil) }

func (req *request) tablesPage(cause error) (answer, error) {
	db, err := req.withDatabase("tables")
	if err != nil {
		return answer{}, err
	}
	tables, err := req.engine.Databases.RLSGet(req.r.Context(), req.call, db.ID)
	if cause != nil {
		err = cause
	}
	return answer{page: "database_tables.html", title: db.title(), data: tablesData{db, listPageOf(tables, req.r.URL.Query(), tablesOnPage)}, live: db.busy()}, err
}

func (req *request) rlsSet() (answer, error) {
	query := req.r.URL.Query() // a field of a form would change a name's line breaks
	change := databases.RLSChange{Schema: query.Get("schema"), Table: query.Get("table"), Enabled: req.form("enabled") == "true"}
	if _, err := req.engine.Databases.RLSSet(req.r.Context(), req.call, req.r.PathValue("id"), change); err != nil {
		return req.tablesPage(err)
	}
	a := done(req.databasePath("tables"), "rls")
	if page := query.Get("page"); page != "" { // stay there
		a.redirect += "&page=" + url.QueryEscape(page)
	}
	return a, nil
}
