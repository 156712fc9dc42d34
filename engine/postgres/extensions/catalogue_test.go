package extensions_test

import (
	"strings"
	"testing"

	"holdfast/engine/postgres/extensions"
)

// Every entry is whole, and names are given once.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	schemas := map[string]string{}
	for _, x := range extensions.Catalogue() {
		if seen[x.Name] || x.Name == "" || x.Notes == "" || strings.HasSuffix(x.Notes, ".") {
			t.Errorf("%+v", x)
		}
		seen[x.Name] = true
		if (x.Class == extensions.ClassPreload) != (x.Preload != "") || len(x.Settings) > 0 && x.Preload == "" {
			t.Errorf("%s: class %s, library %q, settings %v", x.Name, x.Class, x.Preload, x.Settings)
		}
		if !x.Allowed() && (x.Package != "" || len(x.Grants) > 0 || x.Schema != "") {
			t.Errorf("%s is refused, and yet %+v", x.Name, x)
		}
		for _, schema := range append(x.Makes, x.Schema) {
			if schemas[schema] != "" || schema == "public" || strings.HasPrefix(schema, "pg_") {
				t.Errorf("%s: the schema %s", x.Name, schema)
			}
			if schema != "" {
				schemas[schema] = x.Name
			}
		}
		if x.KeepsRows && x.Fixed == "" {
			t.Errorf("%s: its update script runs as the superuser on rows that tenants write", x.Name)
		}
		if found := extensions.Find(x.Name); found.Class != x.Class || !strings.HasPrefix(found.Install(15), "install ") {
			t.Errorf("%s: %+v", x.Name, found)
		}
	}
	for _, name := range []string{"dblink", "postgres_fdw", "file_fdw", "pg_tle", "plpython3u", "none"} {
		if extensions.Find(name).Allowed() {
			t.Errorf("%s is allowed", name)
		}
	}
}
