package remote

import (
	"fmt"
	"strings"
	"testing"
)

// TestImportOfName: a name means the import that is under way or has made the database, of those in a project, and else
// the last one that has failed.
func TestImportOfName(t *testing.T) {
	const here, there = "proj_01k6zv7r9pxa3c5n8m2q4t6w8y", "proj_02k6zv7r9pxa3c5n8m2q4t6w8y"
	number := 0
	attempt := func(project, status string) map[string]any {
		number++
		return map[string]any{
			"id": fmt.Sprintf("imp_%026d", number), "name": "live", "project": project, "status": status,
			"started_at": fmt.Sprintf("2026-01-02T03:%02d:00Z", number),
		}
	}
	for _, test := range []struct {
		name    string
		imports []any
		want    int // index into imports, -1 if the name is ambiguous
	}{
		{"one that follows after failures", []any{attempt(here, "following"), attempt(here, "failed"), attempt(here, "failed")}, 0},
		{"one that is completed before a failure", []any{attempt(here, "failed"), attempt(here, "completed")}, 1},
		{"one that follows after the database was deleted", []any{attempt(here, "completed"), attempt(here, "following")}, 1},
		{"failures only", []any{attempt(here, "failed"), attempt(here, "failed"), attempt(here, "failed")}, 2},
		{"two projects", []any{attempt(here, "following"), attempt(here, "failed"), attempt(there, "following")}, -1},
	} {
		data := map[string]any{"GET /v1/imports": test.imports}
		for _, i := range test.imports {
			data["GET /v1/imports/"+i.(map[string]any)["id"].(string)] = i
		}
		out, _, err := runWith(t, data, "import", "status", "live", "--json")
		if test.want < 0 {
			if err == nil || !strings.Contains(err.Error(), "2 imports have this name") || !strings.Contains(err.Error(), "say --project, or the id") {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if want := test.imports[test.want].(map[string]any)["id"].(string); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s; want %s", test.name, err, out, want)
		}
	}
}

// TestAmbiguous: --project is a remedy only for items of different projects.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	for remedy, items := range map[string][]named{
		"say the id":               {{id: "a", project: "p"}, {id: "b", project: "p"}},
		"say --project, or the id": {{id: "a", project: "p"}, {id: "b", project: "q"}},
	} {
		err := ambiguous("bucket", "photos", items, func(n named) named { return n })
		if !strings.HasSuffix(err.Error(), "; "+remedy) {
			t.Errorf("%v, want %s", err, remedy)
		}
	}
}

// TestEmptyName: an argument that is empty, as with an unset variable in a script, names nothing, even where there is only
// one thing that it could mean.
func TestEmptyName(t *testing.T) {
	id := func(prefix string) string { return fmt.Sprintf("%s%026d", prefix, 1) }
	data := map[string]any{}
	for path, of := range map[string]map[string]any{
		"/v1/databases":        {"id": id(idDatabase), "name": "shop"},
		"/v1/buckets":          {"id": id(idBucket), "name": "files"},
		"/v1/imports":          {"id": id(idImport), "name": "live", "database_id": id(idDatabase)},
		"/v1/users":            {"id": id(idUser), "email": "ada@example.com"},
		"/v1/projects":         {"id": id(idProject), "name": "default"},
		"/v1/account/api-keys": {"id": id(idKey), "name": "ci"},
		"/v1/webhooks":         {"id": id(idWebhook), "name": "chat"},
		"/v1/trash/databases":  {"id": id(idDatabase), "name": "old"},
		"/v1/trash/buckets":    {"id": id(idBucket), "name": "old files"},
	} {
		data["GET "+path] = []any{of}
		data["GET "+path+"/"+of["id"].(string)] = of
		for _, method := range []string{"DELETE ", "PATCH "} {
			data[method+path+"/"+of["id"].(string)] = of
		}
	}
	for _, args := range [][]string{
		{"db", "get", ""},
		{"db", "delete", "", "--yes"},
		{"db", "url", ""},
		{"db", "restart", "", "--yes"},
		{"recovery", "undo", "", "--yes"},
		{"bucket", "delete", "", "--force", "--yes"},
		{"bucket", "update", "", "--public"},
		{"import", "cancel", ""},
		{"import", "cutover", ""},
		{"user", "delete", "", "--yes"},
		{"user", "role", "", "owner"},
		{"user", "link", ""},
		{"session", "end-all", ""},
		{"project", "delete", "", "--yes"},
		{"key", "revoke", "", "--yes"},
		{"webhook", "delete", "", "--yes"},
		{"trash", "purge", "", "--yes"},
		{"object", "delete", "files/a", "--version", "", "--yes"},
	} {
		out, bodies, err := runWith(t, data, args...)
		if err == nil || !strings.Contains(err.Error(), "is empty: say") {
			t.Errorf("%q: %v, %s", args, err, out)
		}
		for request := range bodies {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("%q: it sent %s", args, request)
			}
		}
	}
}

// TestFoundHasTheName: what a list has that is of another name is not what was asked for.
func TestFoundHasTheName(t *testing.T) {
	data := map[string]any{
		"GET /v1/databases": []any{map[string]any{"id": idDatabase + "1", "name": "shop"}},
		"GET /v1/users":     []any{map[string]any{"id": idUser + "1", "email": "ada@example.com"}},
	}
	for want, args := range map[string][]string{
		`there is no database "blog"`:          {"db", "delete", "blog", "--yes"},
		`there is no person "eve@example.com"`: {"user", "delete", "eve@example.com", "--yes"},
	} {
		if out, _, err := runWith(t, data, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %s", args, err, out)
		}
	}
}
