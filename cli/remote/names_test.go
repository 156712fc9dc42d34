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
