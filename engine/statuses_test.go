package engine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"holdfast/engine"
	"holdfast/engine/access"
	"holdfast/engine/model"
	"holdfast/server/api"
)

// overHTTP is an engine behind its HTTP API.
type overHTTP struct {
	*engine.Engine
	project, key string
	api          *api.API
}

func startOverHTTP(t *testing.T) *overHTTP {
	t.Helper()
	e, organization, project := engine.StartForHTTP(t)
	v1 := api.New(e, api.Options{BaseURL: "http://127.0.0.1"})
	secret, _, err := e.Access.KeyCreate(
		&model.Call{Operation: model.OperationFor(model.ActionKeyCreate), Actor: model.Actor{Type: model.ActorOperator}, Organization: organization},
		access.NewKey{Name: "test", Preset: model.PresetFullAccess, AllowDangerous: true, Source: model.KeySourceOperator})
	if err != nil {
		t.Fatal(err)
	}
	return &overHTTP{Engine: e, project: project, key: secret.Reveal(), api: v1}
}

// ask sends a request and returns the response.
func (o *overHTTP) ask(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/v1"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+o.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	o.api.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// id returns the id of the record in a response, which must be a success.
func (o *overHTTP) id(t *testing.T, method, path, body, field string) string {
	t.Helper()
	status, text := o.ask(t, method, path, body)
	var answer struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return fmt.Sprint(answer.Data[field])
}

// request is a request about one database.
type request struct{ method, path, body string }

// aboutDatabases lists every request about one database in the API description: first the reads, then the changes, and
// the deletions at the end.
func (o *overHTTP) aboutDatabases(t *testing.T, backup string) []request {
	t.Helper()
	var description struct{ Paths map[string]map[string]any }
	text, err := o.api.Description()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &description); err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"PUT /allowlist": `{"entries":["127.0.0.1"]}`, "POST /rls": `{"table":"t","enabled":true}`, "POST /backups/{backupId}/restore": `{}`,
		"POST /recovery/restore-request": `{"target_lsn":"0/1000000"}`,
	}
	var all []request
	for path, methods := range description.Paths {
		of, ours := strings.CutPrefix(strings.TrimPrefix(path, "/v1"), "/databases/{id}")
		for method := range methods {
			method = strings.ToUpper(method)
			if !ours || !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
				continue
			}
			body := bodies[method+" "+of]
			if body == "" && method != "GET" && method != "DELETE" {
				body = "{}"
			}
			all = append(all, request{method, strings.ReplaceAll(of, "{backupId}", backup), body})
		}
	}
	if len(all) < 20 {
		t.Fatalf("the description has only %d requests about a database", len(all))
	}
	weight := map[string]int{"GET": 0, "PUT": 1, "PATCH": 1, "POST": 2, "DELETE": 3}
	slices.SortFunc(all, func(a, b request) int {
		if a.method != b.method {
			return weight[a.method] - weight[b.method]
		}
		return strings.Compare(b.path, a.path)
	})
	return all
}

// walk sends all requests. Responses may be refusals, but never internal errors.
func (o *overHTTP) walk(t *testing.T, id string, all []request) {
	t.Helper()
	for _, r := range all {
		if status, text := o.ask(t, r.method, "/databases/"+id+r.path, r.body); status >= 500 {
			t.Errorf("%s %s: %d %s", r.method, r.path, status, text)
		}
	}
}

// TestEveryRequestInEveryStatus sends every request about databases in every status, with and without files, including
// those whose files are still being created or removed.
func TestEveryRequestInEveryStatus(t *testing.T) {
	t.Parallel()
	o := startOverHTTP(t)
	real := o.id(t, "POST", "/databases", `{"project":"`+o.project+`","name":"real"}`, "id")
	backup := o.id(t, "POST", "/databases/"+real+"/backups", "", "id")
	all := o.aboutDatabases(t, backup)
	for _, status := range []model.DatabaseStatus{
		model.DatabaseCreating, model.DatabaseImporting, model.DatabaseRestoring, model.DatabaseRestarting, model.DatabaseDeleting,
		model.DatabaseUnavailable, model.DatabaseFailed, model.DatabaseAvailable, // databases in the following statuses may be deleted
	} {
		t.Run(string(status), func(t *testing.T) {
			id := o.WithoutFiles(t, real, "bare-"+string(status))
			release := o.PutInto(t, id, status)
			remedy := map[model.DatabaseStatus]string{
				model.DatabaseDeleting: "it can be brought back from the trash then", model.DatabaseFailed: "remove the cause and restart it",
			}[status]
			if remedy == "" {
				remedy = "try again when it is available"
			}
			if got, text := o.ask(t, "GET", "/databases/"+id+"/ssl", ""); got != http.StatusConflict || !strings.Contains(text, remedy) {
				t.Errorf("its certificate: %d %s", got, text)
			}
			o.walk(t, id, all)
			release()
			if status == model.DatabaseUnavailable || status == model.DatabaseFailed {
				all := slices.DeleteFunc(slices.Clone(all), func(r request) bool { return r.method == "DELETE" })
				release := o.PutInto(t, real, status)
				o.walk(t, real, all)
				release()
				return
			}
			release = o.PutInto(t, real, status)
			o.walk(t, real, all)
			release()
		})
	}
}

// TestEveryRequestWhileImporting sends requests while an import waits for its source.
func TestEveryRequestWhileImporting(t *testing.T) {
	t.Parallel()
	o := startOverHTTP(t)
	source, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	asked := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := source.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			go func() { _, _ = io.Copy(io.Discard, conn) }() // and sends no response
		}
	}()
	id := o.id(t, "POST", "/imports", fmt.Sprintf(`{"project":%q,"name":"shop","source_url":"postgres://app:secret@%s/shop?sslmode=disable"}`,
		o.project, source.Addr()), "database_id")
	<-asked
	if got, text := o.ask(t, "GET", "/databases/"+id+"/ssl", ""); got != http.StatusConflict || !strings.Contains(text, "the database is importing") {
		t.Errorf("its certificate: %d %s", got, text)
	}
	o.walk(t, id, o.aboutDatabases(t, "bkp_00000000000000000000000000"))
}
