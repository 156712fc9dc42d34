package web

import (
	"net/netip"
	"net/url"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// accessData is what database_access.html shows.
type accessData struct {
	databaseData
	Entries string // one a line
	Applied engine.Allowlist
	// YourAddress is the address the person comes from.
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
	return answer{page: "database_access.html", title: db.title(), data: data, live: db.busy()}, cause
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
	leaf[postgres.Table]
}

// tablesOnPage is how many tables a page shows.
const tablesOnPage = 100

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
	return answer{page: "database_tables.html", title: db.title(), data: tablesData{db, turn(tables, v.r.URL.Query(), tablesOnPage)}, live: db.busy()}, err
}

func (v *visit) rlsSet() (answer, error) {
	query := v.r.URL.Query() // a field of a form would change a name's line breaks
	change := engine.RLSChange{Schema: query.Get("schema"), Table: query.Get("table"), Enabled: v.form("enabled") == "true"}
	if _, err := v.engine.RLSSet(v.r.Context(), v.call, v.r.PathValue("id"), change); err != nil {
		return v.tablesPage(err)
	}
	a := done(v.databasePath("tables"), "rls")
	if page := query.Get("page"); page != "" { // stay there
		a.redirect += "&page=" + url.QueryEscape(page)
	}
	return a, nil
}
