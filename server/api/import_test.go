package api

import (
	"strings"
	"testing"
)

// TestImportForm checks that a malformed import is rejected with the name of its field, and never with any part of
// the URL.
func TestImportForm(t *testing.T) {
	w := open(t)
	project := w.org.project
	const hidden = "hidden-in-the-url"
	for _, test := range []struct{ fields, says string }{
		{`"source_url":"mysql://u:` + hidden + `@h/d"`, "source_url: must begin with postgresql://"},
		{`"source_url":"mysql://u:` + hidden + `@tcp(h:3306)/d"`, "source_url: must begin with postgresql:// or postgres://: only a PostgreSQL server"},
		{`"source_url":"jdbc:postgresql://h/d?password=` + hidden + `"`, "source_url: must begin with postgresql:// or postgres://"},
		{`"source_url":"` + hidden + `"`, "source_url: must begin with postgresql:// or postgres://"},
		{`"source_url":"postgres://u:` + hidden + `@/d"`, "Unix sockets"},
		{`"source_url":"postgres://u:` + hidden + `@%2Ftmp/d"`, "source_url"},
		{`"source_url":"postgres://u:` + hidden + `@a,b/d"`, "more than one host"},
		{`"source_url":"postgres://u:` + hidden + `@h/d?passfile=/x"`, "passfile"},
		{`"source_url":"postgres://u:` + hidden + `@h/d?service=x"`, "service"},
		{`"source_url":"postgres://u:` + hidden + `@h/d?host=/tmp"`, "host"},
		{`"source_url":"postgres://u:` + hidden + `@[fe80::1]/d"`, "link-local"},
		{`"source_url":"postgres://u:` + hidden + `@h/d","same_credentials":true,"username":"me"`, "same_credentials"},
		{`"source_url":"postgres://u:` + hidden + `@h/d","password":"short"`, "password"},
	} {
		got := w.do(t, request{method: "POST", path: "/imports", key: w.org.full, body: `{"project":"` + project + `","name":"shop",` + test.fields + `}`})
		if got.status != 422 || !strings.Contains(got.text, test.says) || strings.Contains(got.text, hidden) {
			t.Errorf("%s: %d %s", test.fields, got.status, got.text)
		}
	}
	if got := w.do(t, request{method: "GET", path: "/imports/imp_x", key: w.org.full}); got.status != 404 {
		t.Errorf("an unknown import: %d %s", got.status, got.text)
	}
	if list := get[[]map[string]any](t, w.do(t, request{method: "GET", path: "/imports", key: w.org.full})); list == nil || len(list) != 0 {
		t.Errorf("imports: %v", list)
	}
}
